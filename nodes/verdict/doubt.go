package verdict

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/nodes/internal/accept"
)

var (
	// denied is all of the clause behind the most lenient value, denialLine all of the line below it.
	ticked     = regexp.MustCompile(`^ *\[[xX]\] *$`)
	denied     = regexp.MustCompile(`(?i)^(?: *\[[xX]\])?[ .,;:!=/<>({\["'“”‘’—–→…\p{So}\x{fe0f}-]*(?:(?:hm+|well|uh|really|so|absolutely|definitely|certainly|clearly|(?:decision|verdict|answer)[:=])[ ,.?…—–-]+)?(?:` + anyDenial + `|none|n/a|na|n|0|x|(?:just )?(?:kidding|joking)|yes ?/ ?no|y ?/ ?n|\?)` + denialEnd)
	denialCell = regexp.MustCompile(`(?i)^[ |]*(?:` + anyDenial + `)` + denialEnd)
	denialLine = regexp.MustCompile(`(?i)^\n?[ ("'“]*(?:please |just )?(?:` + anyDenial + `)` + denialEnd)
	unticked   = regexp.MustCompile(`^ *\[ +\]`)
)

const denialEnd = `(?:[ .!]*$|[ ]*[.,;:!?()\]}"'“”’|—–…])`

// A contradiction finds the sentences that speak against the most lenient value: a negation right beside one of its
// word forms, RELEASE also as releasing or released. "does not release memory" is none.
type contradiction struct {
	stems   []string // a sentence without one of them is none; in small letters
	others  []string // the other values, in small letters
	not     *regexp.Regexp
	against []*regexp.Regexp
	titled  *regexp.Regexp // a label such as "Verdict:" before another value
}

const (
	// between may stand between the negation and the word.
	between = `((?:(?:yet|be|been|being|to|ever|a|an|any|the|for|it|this|that|we|i|as|is|are|its|immediate|just|in good conscience|page|site|design|version|current|` +
		`should|can|could|must|may|would|ship or|publish or|go to|go into|under any circumstances|comfortable|comfortable with|convinced|confident|happy|willing|able|going|safe|safe to|ready|fit|good|enough|suitable|clear|cleared|mature|recommend|recommended|approve|approved|support|endorse|advise|advised|suggest|` +
		`justify|warrant|deserve|merit|allow|allowed|permit|permitted|sign off on|agree with|agree to|think|believe|feel|want|wish|consider|vote|go ahead with|proceed with|proceed to|say|accept|grant|qualify|meet|bar)[ ,]+){0,9})`
	// follow is what goes on behind the word when the reviewed work is meant, not a release note or released memory.
	follow = `(?:\W*$|["'”’]*[.,;:!?)\]—–…]| +[—–-]|["'”’]* +(?:it|this|that|yet|now|today|until|till|before|after|unless|as|at this|in this|in its|like this|like that|to (?:the public|production|anyone|users|customers)|without|because|since|if|when|while|so|or|and|but|either|here|again|` +
		`(?:the|your|our) +(?:page|site|website|design|version|build|draft|work|artifact|result|current|present))\b)`
	// lettingOut are words for what the most lenient value allows.
	lettingOut = `publish(?:ed|ing)?|publication|deploy(?:ed|ing)?|launch(?:ed|ing)?|approv(?:e|ed|ing)|merg(?:e|ed|ing)|sign(?:ed|ing)? off|go(?:es|ing)? (?:live|out)|push(?:ed|ing)? (?:\w+ )?live|let(?:ting)? \w+ out`
	titles     = `verdict|decision|recommendation|conclusion|ruling|outcome|answer|result|summary|status|rating|grade|override|overridden|view|own view|opinion|therefore|hence|thus|bottom line|in short|tl;?dr|better|rather|correction|corrected|corrigendum|update|edit|judge?ment|final|overall|p\.?s\.?|actually|on reflection|on second thoughts?|instead|so|my vote|my call`
)

func newContradiction(d *decisionRule) *contradiction {
	var others, low, words []string
	for _, v := range d.Values[1:] {
		low = append(low, strings.ToLower(v))
		others = append(others, regexp.QuoteMeta(v))
	}
	for _, w := range strings.Fields(string(d.label)) {
		if len(w) > 3 {
			words = append(words, regexp.QuoteMeta(w))
		}
	}
	c := &contradiction{others: low, titled: regexp.MustCompile(`(?i)^(.{0,60}?\b(?:` + strings.Join(append(words, titles), "|") + `)\b[^:=|→]{0,40}?)(?: *(?:[:=,|→—–]|->|=>)[>:|= ]*| +(?:- +|(?:is|becomes|remains|should be|must be|would be|changes to|changed to|to) +))["'“(\[]*` +
		`(?:(?-i:` + strings.Join(others, "|") + `)(?:$|[^\pL\pN_-])|(?:` + strings.Join(others, "|") + `)[.!"'”)\] ]*$)`)}
	word := forms(d.Values[0])
	if word == "" {
		return c // nothing of it is told from ordinary words
	}
	c.stems = []string{strings.TrimSuffix(strings.ToLower(d.Values[0]), "e"), "publi", "deploy", "launch", "approv", "merg", "sign", "live", "out", "ready"}
	out := []string{word, lettingOut}
	for _, w := range strings.Fields(string(d.label)) {
		if f := forms(strings.ToLower(w)); f != "" && !isTitle.MatchString(w) {
			out, c.stems = append(out, f), append(c.stems, strings.ToLower(w))
		}
	}
	letOut := `(?:` + strings.Join(out, "|") + `)`
	article := `(?:(?:a|an|the|this|its|any|your|our) +)?["'“]?`
	object := `(?: +(?:it|this|that|now|today|yet|the \w+))*`
	compile := func(parts ...string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + strings.Join(parts, "")) }

	c.not = compile(`(?:\bnot|n't|`+alternativesAt(nots)+`)(?: +|, under any circumstances, +)`,
		`(?:`+between+`["'“]?`+letOut+`(?:[ -](?:ready|able|worthy|quality|material)\b|`+follow+`)|(?:yet +|quite +|really +)?ready(?: +yet)?["'”’]*(?: *$|[.,;!)—–]))`)
	c.against = []*regexp.Regexp{
		compile(`\b(?:no[ -]+|no[ -]go for +)(?:immediate +|public +)?["'“]?`, letOut, follow), // no release
		compile(`\b(?:against|opposed to|object to) +`, article, letOut, follow),               // against release
		compile(`\b(?:`, alternatives(holding), `) +(?:back +)?`, article, letOut, follow),     // hold the release
		compile(`\bun`, word, `\b`), // unreleasable
		compile(`\b`, letOut, ` +(?:it +)?(?:`, alternatives(grudging), `)\b`),                           // release with caution
		compile(`^\W*(?:only +)?`, letOut, object, `(?: +only)? +(?:after|if|once|when|unless|until)\b`), // release once ...
		compile(`^\W*`, letOut, object, ` *\? *(?:no *(?:$|[.,!])|not\b|never\b)`),                       // release? No.
		compile(`^\W*`, word, ` +(?:denied|refused|rejected|declined|withheld|withdrawn|revoked|blocked|postponed|deferred|vetoed)\b`),
		compile(`\b(?:`, letOut, `["'”]?`, object, ` +(?:is|would be|must be|should be|has to be|remains|stays|seems)|`, word, `["'”]?`, object, ` +(?:was|above (?:is|was))) +(?:`, alternatives(bad), `)`),
		compile(`\b`, letOut, `["'”]?`, object, ` +(?:must|should|has to|will have to) +(?:wait|not (?:happen|proceed|go ahead|take place))`),
		compile(`\b(?:must|needs?|ha(?:s|ve) to|should)\b.*\bbefore +`, article, `(?:this +|it +|the page +|we +|you +|its +)?`, letOut, follow), // must be fixed before release
		compile(`\bbefore +`, article, letOut, ` *,.*\b(?:must|needs?|ha(?:s|ve) to)\b`),
		compile(`^\W*(?:please +|first,? +)?(?:fix|redo|resolve|repair|rework|address|correct|rebuild|finish) .*\bbefore +`, article, letOut, follow),
		compile(`^\W*(?:only +)?(?:an? +|this is +(?:only +)?an? +)?(?:`, alternatives(partly), `) +`, letOut, `\b`), // only a soft release
	}
	return c
}

// forms matches a value as a word: release, releases, released, releasing. A short one counts only as it is declared, and
// when it is no ordinary word; "" when it is.
func forms(value string) string {
	q := regexp.QuoteMeta(value)
	if strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) || utf8.RuneCountInString(value) < 4 {
		if value != strings.ToUpper(value) || len(value) < 2 {
			return ""
		}
		return `(?-i:` + q + `)`
	}
	_, n := utf8.DecodeLastRuneInString(value)
	stem := strings.TrimRight(value, "eE")
	return `(?:` + q + `s?|` + regexp.QuoteMeta(stem) + `(?:ed|ing|able)|` + q + regexp.QuoteMeta(value[len(value)-n:]) + `(?:ed|ing))`
}

var (
	// retracted takes back what stands above.
	retracted = regexp.MustCompile(`(?i)\bI +(?:hereby +|must +|have to +|now +|therefore +|do +)*(?:(?:retract|withdraw|revoke|rescind|recant|reverse|overrule|disregard|unsay)\b *(?:that\b|this\b|it\b|everything|the above|(?:my|the) (?:\w+ )?(?:decision|verdict|release|approval|recommendation|ruling))|take +(?:(?:that|this|it|everything|(?:my|the) (?:\w+ )?\w+) +back|back))|\bI(?:'ve| have)? +changed my mind|` +
		`(?:^|[.,;:!?(—–] *|\b(?:please|so|and|but) +)(?:(?:scratch|strike|disregard|ignore|forget) +(?:that|this|(?:the|my) (?:above|\w+ ?decision|decision|verdict))\b|never mind(?: that)? *(?:[.,!]|$)|i was wrong *(?:[.,!]|$))|(?:^|[.,;:!?(] *)(?:retracted|withdrawn|revoked|overruled|overridden) *(?:[.,!]|$)|\b(?:decision|verdict|release|approval) +(?:withdrawn|retracted|revoked|overruled|void)\b|(?:^|\bi was |[.,;:!?(—–] *)(?:(?:just|only) +)?(?:kidding|joking) *(?:[.,!)]|$)|^\W*(?:/s|sarcasm)\W*$|\b(?:this|that)(?:'s| is| was) +(?:pure +|just +|only +|all +)?(?:sarcasm|sarcastic|a joke|ironic|irony|satire)\b|\bbeing (?:sarcastic|ironic)\b|\bdo(?: not|n't) take (?:this|that|it) seriously\b|\b(?:the|my|that|this)(?: (?:\w+ )?(?:decision|verdict|release|approval|label|line|value|answer|word)| above)?(?: above)? (?:is|was) +(?:hereby +|only +|just +)?(?:withdrawn|retracted|void|revoked|(?:wrong|tentative|provisional|preliminary|(?:an? |the |my )(?:mistake|typo|error|example|template|placeholder|sample|draft|guess)|not (?:yet )?(?:final|mine|(?:my|the|an?)(?: final)? (?:decision|verdict|answer|choice|word|call|ruling)))(?: *$|[.,;:!)—–]))|` +
		`\bI (?:have not|haven't|did not|didn't)(?: yet)? (?:decided?|made up my mind)|\bI am (?:still )?undecided`)
	since = regexp.MustCompile(`(?i)\b(previous|previously|last|prior|earlier|former|formerly|draft|example|template|hypothetical|according)\b`)
	twice = regexp.MustCompile(`(?i)\b(no|nothing|none|nobody|no one|nor|neither|without|why|zero|0|hardly|not|never|cannot|rather than|instead of)\b|n't\b`)
	// criterion restates a rule: "A zero in any gate: do not release"; applies says that it holds here.
	criterion = regexp.MustCompile(`(?i)^\W*(?:(?:rules?|criteri(?:on|a)|scale|gates?) *: *)?(?:if|when|whenever|with|should|had|were|an?|any|one|a single)\b[^:,]*\bany (?:one +|single +)?(?:gate|score|criterion|check|question|test|tier)s?\b[^:,]*[:,]`)
	applies   = regexp.MustCompile(`(?i)\b(?:here|now|today|this|these|currently|like|such|as|and|so|page|is|are|has|have)\b`)
	pastVerb  = regexp.MustCompile(`(?i)\b(has|have|had|was|were|did|does|hasn|haven)$`)
	decides   = regexp.MustCompile(`(?i)\b(verdict|decision|ruling|judge?ment)\b`)
	heads     = regexp.MustCompile(`(?i)^[# ]*(?:(?:the|my|final|overall) +)*(?:verdict|decision|ruling|recommendation|conclusion) *:? *$`)
	isVerb    = regexp.MustCompile(`(?i)\b(is|are|isn|aren)$`)
	isTitle   = regexp.MustCompile(`(?i)^(?:` + titles + `)$`)
	theWork   = regexp.MustCompile(`(?i)\b(this|it|that|page|site|website|design|version|build|draft|work|result|artifact|we)\b`)
	said      = regexp.MustCompile(`"[^" ]+ [^"]*"|“[^” ]+ [^”]*”|„[^“” ]+ [^“”]*[“”]|«[^» ]+ [^»]*»`)
	sentence  = regexp.MustCompile(`[.!?;](?: +|$)`)
)

// contradicted returns what speaks against the most lenient value elsewhere; against a final decision, only below it.
func (d *decisionRule) contradicted(r *review, got ruling) (text string, ok bool) {
	if !d.lenient(got.value) {
		return "", false
	}
	from, last := 0, d.lastLabel(r.plain)
	if got.final {
		from = last
	}
	for i := from; i < len(r.plain); i++ {
		if r.plain[i] == "" {
			continue
		}
		if text, ok := d.lineAgainst(r, i, last); ok {
			return accept.Quote(bare(text)), true
		}
		line, end := gathered(r.plain, i)
		if i >= last && retracted.MatchString(line) || verdictAlone(line) || unseen.MatchString(line) && !since.MatchString(line) {
			return accept.Quote(bare(line)), true
		}
		if text, ok := d.contradicts().find(line); ok {
			return text, true
		}
		i = end
	}
	if text, ok := d.unreasoned(r.plain, last); ok {
		return accept.Quote(text), true
	}
	return d.noted(r)
}

// lineAgainst returns the line, or what stands below it as a heading, when its form speaks against the most lenient value:
// another one or none as the decision, a field, a value struck out or named. last is where the decision stands.
func (d *decisionRule) lineAgainst(r *review, i, last int) (text string, ok bool) {
	if titled := headed(r.plain, i); d.other(titled) {
		return titled, true
	}
	if fieldAgainst(r.plain, i) || d.struck(r.raw[i]) || d.rivalled(r.plain, i, i < last) {
		return r.raw[i], true
	}
	if heads.MatchString(r.plain[i]) {
		return d.unreasoned(r.plain, i)
	}
	return "", false
}

// gathered returns a line with those that go on with its sentence, and the last of them.
func gathered(lines []string, i int) (line string, end int) {
	line = lines[i]
	for i+1 < len(lines) && len(line) < longest && small(lines[i+1]) {
		i++
		line += " " + strings.TrimSpace(lines[i])
	}
	return line, i
}

// struck reports whether the most lenient value is struck out on a line.
func (d *decisionRule) struck(line string) bool {
	for _, s := range struckOut.FindAllString(line, -1) {
		if slices.Contains(named(s, d.Values[:1]), d.Values[0]) {
			return true
		}
	}
	return false
}

// other reports whether a line gives another value, or none, as the decision, in the form of a label.
func (d *decisionRule) other(line string) bool {
	low := strings.ToLower(line)
	return slices.ContainsFunc(d.contradicts().others, func(v string) bool { return strings.Contains(low, v) }) && d.titled(line)
}

// headed returns a line, and when it is nothing but a word such as Verdict, with what stands below.
func headed(lines []string, i int) string {
	if !heads.MatchString(lines[i]) {
		return lines[i]
	}
	next := i + 1
	for next < len(lines) && lines[next] == "" && next < i+3 {
		next++
	}
	if next >= len(lines) {
		return lines[i]
	}
	return bare(strings.TrimRight(lines[i], ": ")) + ": " + bare(lines[next])
}

// find returns the sentence of a line that speaks against the value.
func (c *contradiction) find(line string) (text string, ok bool) {
	low := strings.ToLower(line)
	if !slices.ContainsFunc(c.stems, func(stem string) bool { return strings.Contains(low, stem) }) {
		return "", false
	}
	if strings.Contains(line, "?") && c.in(bare(line)) {
		return accept.Quote(bare(line)), true
	}
	for _, s := range sentence.Split(said.ReplaceAllString(line, " "), -1) {
		if s = strings.TrimSpace(s); c.in(s) {
			return accept.Quote(bare(s)), true
		}
	}
	return "", false
}

// small reports whether a line goes on with the sentence of the one above.
func small(line string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimSpace(line))
	return unicode.IsLower(r)
}

// lastLabel returns the last line with the label.
func (d *decisionRule) lastLabel(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if slices.ContainsFunc(cells(lines[i]), func(cell string) bool { _, _, ok := d.cut(cell); return ok }) {
			return i
		}
	}
	return 0
}

// titled reports whether a line gives another value behind a word such as Verdict.
func (d *decisionRule) titled(line string) bool {
	cell := bare(strings.Trim(line, "| "))
	if rest, _, ok := d.cut(cell); ok {
		if _, _, ok := d.behind(rest); ok {
			return false // read already
		}
	}
	m := d.contradicts().titled.FindStringSubmatchIndex(cell)
	if m == nil {
		return false
	}
	title, rest := cell[m[2]:m[3]], cell[m[1]:]
	if r, _ := utf8.DecodeRuneInString(rest); unicode.IsLetter(r) && !vouches.MatchString(rest) && !decides.MatchString(title) {
		return false // Recommendation: POLISH the footer
	}
	return !since.MatchString(title) && !foreign.MatchString(title) && !older.MatchString(title) && len(named(cell, d.Values)) < 3
}

// in reports whether a sentence speaks against the value.
func (c *contradiction) in(s string) bool {
	if c.not == nil || since.MatchString(s) || criterion.MatchString(s) && !applies.MatchString(s) {
		return false
	}
	if m := c.not.FindStringSubmatchIndex(s); m != nil {
		before := clause(strings.TrimRight(s[:m[0]], " "))
		bareVerb := m[2] == m[3]
		switch {
		case twice.MatchString(before), pastVerb.MatchString(before) && (bareVerb || !strings.HasSuffix(before, "does")):
		case isVerb.MatchString(before) && bareVerb && !theWork.MatchString(before):
		default:
			return true
		}
	}
	for _, re := range c.against {
		if m := re.FindStringIndex(s); m != nil && !twice.MatchString(clause(s[:m[0]])) {
			return true
		}
	}
	return false
}

// noted returns a comment on the line of a decision that leaves a doubt about it.
func (d *decisionRule) noted(r *review) (text string, ok bool) {
	for _, n := range r.notes {
		if !slices.ContainsFunc(cells(r.plain[n.line]), func(cell string) bool { _, _, ok := d.cut(cell); return ok }) {
			continue
		}
		note := " (" + strings.TrimSpace(normal(n.text)) + ")"
		names := named(note, d.Values)
		other := slices.ContainsFunc(names, func(v string) bool { return v != d.Values[0] })
		if withdrawn.MatchString(note) || denied.MatchString(note) || weakened(note) || other && len(names) < len(d.Values) || d.contradicts().in(n.text) {
			return accept.Quote(n.text), true
		}
	}
	return "", false
}

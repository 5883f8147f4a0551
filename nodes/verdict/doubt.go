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
	denied     = regexp.MustCompile(`(?i)^(?: *\[[xX]\])?[ .,;:!=/>({\["'“”‘’—–→…\p{So}\x{fe0f}-]*(?:(?:hm+|well|uh|really|so|absolutely|definitely|certainly|clearly|(?:decision|verdict|answer)[:=])[ ,.?…—–-]+)?(?:` + denial + `|none|n/a|na|n|0|x|(?:just )?(?:kidding|joking)|yes ?/ ?no|y ?/ ?n|\?)` + denialEnd)
	denialCell = regexp.MustCompile(`(?i)^[ |]*(?:` + denial + `)` + denialEnd)
	denialLine = regexp.MustCompile(`(?i)^\n?[ ("'“]*(?:` + denial + `)` + denialEnd)
	unticked   = regexp.MustCompile(`^ *\[ +\]`)
)

const (
	denial = `no|not|nope|nah|nay|nein|non|never|no way|no[ -]?go|false|off|nil|null|void|negative|tbd|tba|tbc|todo|pending|maybe|perhaps|possibly|unclear|unsure|uncertain|undecided|unknown|` +
		`hold|wait|stop|blocked|denied|refused|rejected|declined|withdrawn|retracted|revoked|cancell?ed|disabled|failed|wrong|` +
		`not (?:yet|now|ready|so|really|quite|sure|today|recommended|approved|advised|advisable|possible|granted|justified|ok|okay)`
	denialEnd = `(?:[ .!]*$|[ ]*[.,;:!?()\]}"'“”’|—–…])`
)

// A contradiction finds the sentences that speak against the most lenient value: a negation right beside one of its
// word forms, RELEASE also as releasing or released. "does not release memory" is none.
type contradiction struct {
	stem             string   // in small letters
	others           []string // the other values, in small letters
	no, not, against *regexp.Regexp
	holds, refused   *regexp.Regexp
	titled           *regexp.Regexp // a label such as "Verdict:" before another value
	chosen           *regexp.Regexp // a sentence that takes another value
}

const (
	// between may stand between the negation and the word.
	between = `((?:(?:yet|be|been|being|to|ever|a|an|any|the|for|it|this|that|we|i|as|is|are|its|immediate|just|in good conscience|page|site|design|version|current|` +
		`should|can|could|must|may|would|ship or|publish or|go to|go into|under any circumstances|comfortable|comfortable with|convinced|confident|happy|willing|able|going|safe|safe to|ready|fit|good|enough|suitable|clear|cleared|mature|recommend|recommended|approve|approved|support|endorse|advise|advised|suggest|` +
		`justify|warrant|deserve|merit|allow|allowed|permit|permitted|sign off on|agree with|agree to|think|believe|feel|want|wish|consider|vote|go ahead with|proceed with|proceed to|say|accept|grant|qualify|meet|bar)[ ,]+){0,9})`
	// follow is what goes on behind the word when the reviewed work is meant, not a release note or released memory.
	follow = `(?:\W*$|["'”’]*[.,;:!?)\]—–…]| +[—–-]|["'”’]* +(?:it|this|that|yet|now|today|until|till|before|after|unless|as|at this|in this|in its|to (?:the public|production|anyone|users|customers)|without|because|since|if|when|while|so|or|and|but|either|here|again|` +
		`(?:the|your|our) +(?:page|site|website|design|version|build|draft|work|artifact|result|current|present))\b)`
	titles = `verdict|decision|recommendation|conclusion|ruling|outcome|correction|corrected|corrigendum|update|edit|judge?ment|final|overall|p\.?s\.?|actually|on reflection|on second thoughts?|instead|so|my vote|my call`
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
	c.chosen = regexp.MustCompile(`(?:\bI|\bWe|\bwe)(?:'d| would)? +(?:rather +|now +)?(?:go with|say|choose|pick|vote|vote for|recommend|settle on|decide on|decide for) +["'“]?(?:` + strings.Join(others, "|") + `)["'”]?(?: *$|[.,;:!)]| +(?:instead|now|because)\b| +[—–-])`)
	word := forms(d.Values[0])
	if word == "" {
		return c
	}
	c.stem = strings.TrimSuffix(strings.ToLower(d.Values[0]), "e")
	article := `(?:(?:a|an|the|this|its|any|your|our) +)?["'“]?`
	c.no = regexp.MustCompile(`(?i)\b(?:no|no[ -]go for) +(?:immediate +|public +)?["'“]?` + word + follow)
	c.not = regexp.MustCompile(`(?i)(?:\bnot|n't|\bnever|\bcannot|\bnobody|\bno one|\bby no means|\bnot in a state|\bunable|\bunfit|\bunready|\bunsuitable|\bfar from|\btoo early|\bpremature)(?: +|, under any circumstances, +)` + between + `["'“]?` + word + `(?:[ -](?:ready|able|worthy|quality|material)\b|` + follow + `)`)
	c.against = regexp.MustCompile(`(?i)\b(?:against|opposed to|object to) +` + article + word + follow)
	c.holds = regexp.MustCompile(`(?i)\b(?:hold|holds|hold off|hold off on|refrain from|avoid|advise not to|hold back|holds back|withhold|withholds|block|blocks|delay|postpone|stop|refuse|deny|reject|rejects|defer|cancel|veto|halt|forbid|forbids|rules? out) +(?:back +)?` + article + word + follow)
	c.refused = regexp.MustCompile(`(?i)\bun` + word + `\b|^\W*` + word + ` *(?:[:=?—–]|->|=>|→| - ) *(?:` + denial + `)(?:[ .!]*$|[,;])|^\W*` + word + ` +(?:denied|refused|rejected|declined|withheld|withdrawn|revoked|blocked|postponed|deferred|vetoed)\b|\b` + word + `["'”]? +(?:(?:is|was|would be|must be|should be|has to be|remains|stays|seems|above (?:is|was)) +(?:blocked|held|withheld|denied|refused|rejected|postponed|deferred|delayed|premature|too early|off\b|impossible|out of the question|unwise|inadvisable|withdrawn|revoked|retracted|cancell?ed|vetoed|unjustified|wrong|an? (?:mistake|typo|error)|` +
		`not +(?:yet +)?(?:possible|recommended|justified|warranted|advised|advisable|ok|okay|acceptable|ready|approved|an option|appropriate))|(?:must|should|has to|will have to) +(?:wait|not (?:happen|proceed|go ahead|take place)))`)
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
		`(?:^|[.,;:!?(—–] *|\b(?:please|so|and|but) +)(?:(?:scratch|strike|disregard|ignore|forget) +(?:that|this|(?:the|my) (?:above|\w+ ?decision|decision|verdict))\b|never mind(?: that)? *(?:[.,!]|$)|i was wrong *(?:[.,!]|$))|(?:^|[.,;:!?(] *)(?:retracted|withdrawn|revoked) *(?:[.,!]|$)|\b(?:the|my|that) (?:above|(?:ship )?(?:decision|verdict|release|approval)(?: above)?) (?:is|was) +(?:hereby +)?(?:withdrawn|retracted|void|wrong|revoked|a mistake)`)
	since    = regexp.MustCompile(`(?i)\b(previous|previously|last|prior|earlier|former|formerly|draft|example|template|hypothetical|according)\b`)
	twice    = regexp.MustCompile(`(?i)\b(no|nothing|none|nobody|no one|nor|neither|without|why|zero|0|hardly|not|never|cannot|rather than|instead of)\b|n't\b`)
	pastVerb = regexp.MustCompile(`(?i)\b(has|have|had|was|were|did|does|hasn|haven)$`)
	decides  = regexp.MustCompile(`(?i)\b(verdict|decision|ruling|judge?ment)\b`)
	heads    = regexp.MustCompile(`(?i)^[# ]*(?:(?:the|my|final|overall) +)*(?:verdict|decision|ruling|recommendation|conclusion) *:? *$`)
	refusing = regexp.MustCompile(`(?i)^(?:(?:the|my|final|overall) +)*(?:verdict|decision|ruling|recommendation|conclusion)(?: *[:=|→—–]+| +-| +is) *(?:` + denial + `)` + denialEnd)
	isVerb   = regexp.MustCompile(`(?i)\b(is|are|isn|aren)$`)
	theWork  = regexp.MustCompile(`(?i)\b(this|it|that|page|site|website|design|version|build|draft|work|result|artifact|we)\b`)
	said     = regexp.MustCompile(`"[^" ]+ [^"]*"|“[^” ]+ [^”]*”|„[^“” ]+ [^“”]*[“”]|«[^» ]+ [^»]*»`)
	sentence = regexp.MustCompile(`[.!?;](?: +|$)`)
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
		line := r.plain[i]
		if line == "" {
			continue
		}
		if titled := headed(r.plain, i); d.other(titled) {
			return accept.Quote(bare(titled)), true
		}
		for i+1 < len(r.plain) && len(line) < longest && small(r.plain[i+1]) {
			i++
			line += " " + strings.TrimSpace(r.plain[i])
		}
		if i >= last && retracted.MatchString(line) {
			return accept.Quote(bare(line)), true
		}
		if text, ok := d.contradicts().find(line); ok {
			return text, true
		}
	}
	return d.noted(r)
}

// other reports whether a line gives another value, or none, as the decision.
func (d *decisionRule) other(line string) bool {
	low := strings.ToLower(line)
	return refusing.MatchString(bare(line)) ||
		slices.ContainsFunc(d.contradicts().others, func(v string) bool { return strings.Contains(low, v) }) &&
			(d.titled(line) || d.contradicts().chosen.MatchString(line))
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
	if c.stem == "" || !strings.Contains(strings.ToLower(line), c.stem) {
		return "", false
	}
	if strings.Contains(line, "?") && c.refused.MatchString(bare(line)) {
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
	if r, _ := utf8.DecodeRuneInString(rest); unicode.IsLetter(r) && !leads.MatchString(rest) && !decides.MatchString(title) {
		return false // Recommendation: POLISH the footer
	}
	return !since.MatchString(title) && !foreign.MatchString(title) && !older.MatchString(title) && len(named(cell, d.Values)) < 3
}

// in reports whether a sentence speaks against the value.
func (c *contradiction) in(s string) bool {
	if c.stem == "" || since.MatchString(s) {
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
	for _, re := range []*regexp.Regexp{c.no, c.against, c.holds, c.refused} {
		if m := re.FindStringIndex(s); m != nil && !twice.MatchString(clause(s[:m[0]])) {
			return true
		}
	}
	return false
}

// clause returns the last clause of a text.
func clause(s string) string { return s[strings.LastIndexAny(s, ",:(")+1:] }

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

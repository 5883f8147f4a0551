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
	negation  = regexp.MustCompile(`(?i)\b(not|no|never|cannot|can't|don't|doesn't|won't|isn't|wouldn't|without|neither|nor|against)\b`)
	withdrawn = regexp.MustCompile(`(?i)^[ ,;:(—–-]*((is|would be|should be|was|are) +(not|never|n't)|isn't|not\b|no\b *[.,!]|cannot|can't|never)`)
	butNot    = regexp.MustCompile(`(?i)^[ ,;:(—–-]*(and |but )?not +(an? |the )?`)
	listing   = regexp.MustCompile(`(?i)^[ \]>)]*(\||/|,|;|&|→|->|=>|\[[ xX]\]|or\b|and\b|to\b|vs\b)?[ <\[(]*`)

	// What follows are doubts about the most lenient value. hedged stands right behind it.
	hedged = regexp.MustCompile(`(?i)^[ ,;:(—–-]*(if|once|unless|pending|when|provided|subject to|conditional|conditionally|as soon as|but|with reservations|candidate|blocked|later|soon|maybe|almost|nearly)\b`)
	// leads may stand right behind it; any other word takes part of it back.
	leads = regexp.MustCompile(`(?i)^ *(because|since|as|now|today|immediately|approved|confirmed|granted|recommended|it|without (?:any )?(?:reservations?|conditions?|caveats?|hesitation|changes))\b`)
	// restricted is all of the remark right behind it, or its first words: a part of a release, or none that is meant.
	restricted = regexp.MustCompile(`(?i)^[ ,;:(\[{/—–-]+(?:(?:just|only|very|for|in|as|an?|the|with|rather|quite|still|to) +)*(?:limited|partial|partially|beta|alpha|internal|internally|staging|preview|soft|draft|sample|example|template|placeholder|copied|quoted|quote|discussion|review|broken|invalid|disputed|contested|theory|theoretically|principle|ironic|ironically|sarcasm|sarcastic|joke|lol|s|test|50/50|fifty-fifty|leaning|blockers?)(?: +(?:only|release|launch|rollout|open|from .*))?(?: *$|[)\].,;:!—–])|` +
		`^[ ,;:(\[—–-]+(?:as |per |says |see |quoting |copied |quoted )|\bonly *[)\].]* *$`)
	// reserved takes it away anywhere in its own sentence, conditions where a clause of that begins.
	reserved = regexp.MustCompile(`(?i)\b(denied|refused|rejected|declined|withheld|withdrawn|revoked|retracted|rescinded|vetoed|overruled|overridden|suspended|conditional|conditionally|conditions|reservations|on hold|held back|postponed|deferred|delayed|pending|unless|until|subject to|provided that|not yet|not warranted|not justified|premature|too early|` +
		`risky|risks|unsafe|unsound|unfit|unready|unstable|unfinished|untested|unverified|unconfirmed|unapproved|uncertain|unlikely|undecided|unusable|unacceptable|unwise|unsure|inadvisable|incomplete|caveats?|low confidence|reluctant|reluctantly|barely|tentative|tentatively|provisional|provisionally|caution|cautiously|` +
		`needs?|requires|must (?:be|fix)|fix [^.]*\bfirst|remain|remains|awaiting|awaits|to be|guess|probably|likely|blockers? open|open blockers?|needed|required|fails?|failed|below|too low|disagree|doubts?|doubtful|dissent|under protest|against|questionable|typo|mistake|downgraded|outstanding|eventually|someday|another|one more|before (?:launch|launching|release|releasing|shipping|publishing|going live)|do it after|never mind)\b|\bmust-fix *:`)
	// vouched is a short remark in brackets that leaves no doubt; any other may.
	remark  = regexp.MustCompile(`^[ ,]*[(\[]([^()\[\]]*)[)\]]`)
	vouched = regexp.MustCompile(`(?i)\b(?:no|none|nothing|zero|0|without|all|every|each|was|not|final|finally|confirmed|approved|unanimous|unanimously|unconditional|unconditionally|ready|go|ship|pass|passes|passed|yes|ok|okay|high|clean|great|excellent|good|strong|solid|superb|perfect|beautiful|met|meets|holds?|intact|safe|sure|green|done|complete|clear|cleared|best|better|well|work|now|today|immediately|this|because|since|the decision)\b|[0-9] *(?:/|of|%)|^ *(?:[a-z]+ +)?#?[0-9]+ *$|^[^a-z]*$|^[ x]*$`)
	trails  = regexp.MustCompile(`^ *(?:[+&~]|-ish\b|(?:\.{3,}|…) *$)`)
	// none stands before such a word, in its clause, little behind it, and takes it away.
	none       = regexp.MustCompile(`(?i)\b(?:no|nothing|none|zero|0)\b[^,;:.!?()—–]*$|\bwithout(?: \w+)? *$`)
	unless     = regexp.MustCompile(`(?i)\b(?:not|but|except|until|doubt|unless)\b|n't\b`)
	noneBehind = regexp.MustCompile(`(?i)^ +(?:no|nothing|none)\b`)
	little     = regexp.MustCompile(`(?i)\b(?:cosmetic|optional|nits?|minor|taste)\b`)
	conditions = regexp.MustCompile(`(?i)(?:[,;:(\[|…—–]| - ) *(?:and +|then +)?(if|once|after|when|only|assuming|except)\b( +(?:[0-9]+|two|three|four|five|six|minor|cosmetic)\b)?`)
	// recanted takes it away wherever a clause begins.
	recanted = regexp.MustCompile(`(?i)(?:[,;:.(\[|!?…—–]| - ) *(wait|correction|corrected|corrigendum|actually|scratch|strike|i mean|on second thought|on reflection|however|assuming|except|provided|unless|only if|only when|only after|not yet|hold on|never mind|sorry|oops)\b`)
	// spared says that another value is not meant.
	spared = regexp.MustCompile(`(?i)\b(not|was|from|previously|earlier|before|last|formerly|instead of|rather than|over|above|than|beyond|no longer)( +an?| +the| +to)?[ :]*$`)
	// A line below goes on with the sentence, or the paragraph below begins with a reservation.
	goesOn  = regexp.MustCompile(`(?i)^\n?(not\b|but\b|however\b|unless\b|except\b|provided\b|only (if|when|after|once)\b|wait(?: *$| *[.,:;!…—–-]| (?:for|until|till)\b)|actually\b|correction\b|no[.,!]|pending\b|subject to\b|on second thought\b)|^(if|once|when|after|assuming|conditional)\b`)
	notOne  = regexp.MustCompile(`(?i)\bnot a single\b`)
	endMark = `.,;:!)]>}"'”’»_—–-|`
)

// judge reads the text behind the label: the first word must be a value as it is declared, and
// nothing may take it back. next is the line below, with a line end in front when it is another paragraph.
func (d *decisionRule) judge(text, next string) ruling {
	out := ruling{text: accept.Quote(text)}
	s, signs := unwrap(text)
	if signs == "no" {
		out.reason = "negated"
		return out
	}
	value, rest, ok := leading(s, d.Values)
	rest, next = notOne.ReplaceAllString(rest, "no"), notOne.ReplaceAllString(next, "no")
	if !ok {
		out.reason = reasonOf(s, text, named(s, d.Values))
		return out
	}
	lenient := d.lenient(value)
	switch {
	case d.begins(rest[len(listing.FindString(rest)):]):
		out.reason = "ambiguous"
		if len(named(s, d.Values)) > 2 || strings.Contains(rest, "|") {
			out.reason = "template"
		}
	case withdrawn.MatchString(rest) && !d.begins(rest[len(butNot.FindString(rest)):]):
		out.reason = "negated"
	case lenient && strings.ContainsFunc(rest, denies):
		out.reason = "negated"
	case strings.HasPrefix(strings.TrimLeft(rest, endMark+" "), "?"):
		out.reason = "ambiguous"
		if negation.MatchString(rest) {
			out.reason = "negated"
		}
	case lenient && (weakened(rest) || d.otherwise(rest) || goesOn.MatchString(next) || denialLine.MatchString(next)):
		out.reason = "ambiguous"
	case lenient && (unticked.MatchString(rest) || denied.MatchString(rest) && !ticked.MatchString(rest) || denialCell.MatchString(rest)):
		out.reason = "negated"
	case lenient && remarked(rest):
		out.reason = "ambiguous"
	default:
		out.value = value
		if signs == "brackets" {
			out.doubt = "brackets left from the template"
		}
	}
	return out
}

// remarked reports whether a short remark in brackets stands behind the most lenient value that does not vouch for it.
func remarked(rest string) bool {
	m := remark.FindStringSubmatch(rest)
	return m != nil && len(strings.Fields(m[1])) <= shortRemark && !vouched.MatchString(m[1])
}

// shortRemark is the most words of a remark that says nothing more than how the value is meant.
const shortRemark = 4

// begins reports whether a text begins with a value.
func (d *decisionRule) begins(s string) bool {
	_, _, ok := leading(s, d.Values)
	return ok
}

// weakened reports whether what follows the most lenient value leaves a doubt: doubt is never
// resolved towards it.
func weakened(rest string) bool {
	if hedged.MatchString(rest) || restricted.MatchString(rest) || trails.MatchString(rest) {
		return true
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, ` "'”’»)]>}`))
	if (unicode.IsLetter(r) || unicode.IsDigit(r)) && (!leads.MatchString(rest) || unicode.IsDigit(r)) {
		return true
	}
	sentence, _, _ := strings.Cut(strings.ReplaceAll(rest, "!", "."), ". ")
	return strings.Contains(sentence, "?") || reserves(sentence) || conditional(sentence) || recanted.MatchString(rest)
}

// reserves reports whether a sentence holds a word of doubt that it does not take away: "risky", but not "nothing risky is left".
func reserves(sentence string) bool {
	for _, m := range reserved.FindAllStringIndex(sentence, -1) {
		before := none.FindString(sentence[:m[0]])
		taken := before != "" && !unless.MatchString(before) || noneBehind.MatchString(sentence[m[1]:])
		small := strings.HasPrefix(strings.ToLower(sentence[m[0]:m[1]]), "remain") && little.MatchString(clause(sentence[:m[0]]))
		if !taken && !small {
			return true
		}
	}
	return false
}

// conditional reports whether a clause of a sentence begins with a condition; "after three rounds" is none.
func conditional(sentence string) bool {
	for _, m := range conditions.FindAllStringSubmatch(sentence, -1) {
		if counted := m[2] != "" && (strings.EqualFold(m[1], "after") || strings.EqualFold(m[1], "only")); !counted {
			return true
		}
	}
	return false
}

// otherwise reports whether another value is named behind the most lenient one, as more than a comparison.
func (d *decisionRule) otherwise(rest string) bool {
	at := 0
	for _, w := range strings.FieldsFunc(rest, func(r rune) bool { return !wordRune(r) }) {
		n := at + strings.Index(rest[at:], w)
		at = n + len(w)
		if w = strings.Trim(w, "-_."); w != d.Values[0] && slices.Contains(d.Values, w) && !spared.MatchString(rest[max(0, n-40):n]) {
			return true
		}
	}
	return false
}

// reasonOf says why a text is no value.
func reasonOf(s, text string, names []string) string {
	switch {
	case len(names) > 1 && (strings.ContainsAny(text, "|<>") || len(names) > 2):
		return "template"
	case len(names) > 1:
		return "ambiguous"
	case negation.MatchString(s) && len(names) == 1:
		return "negated"
	case strings.HasPrefix(text, "<") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") || strings.Trim(text, "._ …?-–—") == "":
		return "template"
	}
	return "undefined"
}

// unwrap takes signs, quotation marks, brackets and bars off. signs is "brackets" when brackets were there, "no"
// for a sign that denies.
func unwrap(text string) (s, signs string) {
	s = strings.TrimSpace(text)
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case denies(r):
			return s, "no"
		case unicode.Is(unicode.So, r) || strings.ContainsRune("\ufe0f \"“„«_'|", r):
		case strings.ContainsRune("[(<{", r):
			signs = "brackets"
		default:
			return s, signs
		}
		s = s[n:]
	}
	return s, signs
}

// leading returns the value that a text begins with, as a whole word, and what follows. Other
// spelling counts only when nothing but a sentence's end follows.
func leading(s string, values []string) (value, rest string, ok bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return !wordRune(r) })
	if end < 0 {
		end = len(s)
	}
	word := strings.TrimRight(s[:end], "-_.")
	rest = s[len(word):]
	for _, v := range values {
		if word == v {
			return v, rest, true
		}
	}
	for _, v := range values {
		if strings.EqualFold(word, v) && strings.Trim(rest, endMark+" ") == "" {
			return v, rest, true
		}
	}
	return "", "", false
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' || r == '.'
}

// named returns the values that stand in a text as whole words.
func named(s string, values []string) []string {
	var out []string
	words := strings.FieldsFunc(s, func(r rune) bool { return !wordRune(r) })
	for _, w := range words {
		w = strings.Trim(w, "-_.")
		if slices.Contains(values, w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

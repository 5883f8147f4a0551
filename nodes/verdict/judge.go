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
	hedged = regexp.MustCompile(`(?i)^[ ,;:(—–-]*(if|once|unless|pending|when|provided|only|after|subject to|conditional|conditionally|as soon as|but|with reservations|candidate|blocked|later|soon|maybe|almost|nearly)\b`)
	// leads may stand right behind it; any other word takes part of it back.
	leads = regexp.MustCompile(`(?i)^ *(because|since|as|now|today|immediately|approved|confirmed|granted|recommended|it)\b`)
	// reserved takes it away anywhere in its own sentence, conditions where a clause of that begins.
	reserved   = regexp.MustCompile(`(?i)\?|\b(denied|refused|rejected|declined|withheld|withdrawn|revoked|retracted|rescinded|vetoed|overruled|overridden|suspended|conditional|conditionally|conditions|reservations|on hold|held back|postponed|deferred|delayed|pending|unless|until|subject to|provided that|not yet|not warranted|not justified|premature|too early)\b`)
	conditions = regexp.MustCompile(`(?i)(?:[,;:(\[|…—–]| - ) *(?:and +|then +)?(if|once|after|when|only|assuming|except)\b`)
	// recanted takes it away wherever a clause begins.
	recanted = regexp.MustCompile(`(?i)(?:[,;:.(\[|!?…—–]| - ) *(wait|correction|corrected|corrigendum|actually|scratch|strike|i mean|on second thought|on reflection|however|assuming|except|provided|unless|only if|only when|only after|not yet|hold on|never mind|sorry|oops)\b`)
	// spared says that another value is not meant.
	spared = regexp.MustCompile(`(?i)\b(not|was|from|previously|earlier|before|last|formerly|instead of|rather than|over|above|than|beyond|no longer)( +an?| +the| +to)?[ :]*$`)
	// A line below goes on with the sentence, or the paragraph below begins with a reservation.
	goesOn  = regexp.MustCompile(`(?i)^\n?(not\b|but\b|however\b|unless\b|except\b|provided\b|only (if|when|after|once)\b|wait\b|actually\b|correction\b|no[.,!]|pending\b|subject to\b|on second thought\b)|^(if|once|when|after|assuming|conditional)\b`)
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
	default:
		out.value = value
		if signs == "brackets" {
			out.doubt = "brackets left from the template"
		}
	}
	return out
}

// begins reports whether a text begins with a value.
func (d *decisionRule) begins(s string) bool {
	_, _, ok := leading(s, d.Values)
	return ok
}

// weakened reports whether what follows the most lenient value leaves a doubt: doubt is never
// resolved towards it.
func weakened(rest string) bool {
	if hedged.MatchString(rest) {
		return true
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, ` "'”’»)]>}`))
	if (unicode.IsLetter(r) || unicode.IsDigit(r)) && (!leads.MatchString(rest) || unicode.IsDigit(r)) {
		return true
	}
	sentence, _, _ := strings.Cut(strings.ReplaceAll(rest, "!", "."), ". ")
	return reserved.MatchString(sentence) || conditions.MatchString(sentence) || recanted.MatchString(rest)
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

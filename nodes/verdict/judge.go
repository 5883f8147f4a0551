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
	butNot    = regexp.MustCompile(`(?i)^[ ,;:(—–-]*(and |but )?not +((yet|quite|ready for|fit for|an?|the) +)*`)
	// notOnly begins a remark that denies nothing: "not perfect, but ready".
	notOnly = regexp.MustCompile(`(?i)^[ ,;:(—–-]*not +(?:perfect|flawless|only|just|merely|because|least)\b`)
	listing = regexp.MustCompile(`(?i)^[ \]>)"'”’»]*(\\?\||/|,|;|&|·|•|[-–—] |→|->|=>|\[[ xX]\]|or\b|and\b|to\b|vs\b)?[ <\[("'“‘«]*`)
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
	rest, next = notOne.ReplaceAllString(rest, "no"), said.ReplaceAllString(notOne.ReplaceAllString(next, "no"), " ")
	if !ok {
		out.reason = reasonOf(s, text, named(s, d.Values))
		return out
	}
	lenient := d.lenient(value)
	switch {
	case d.lists(value, rest):
		out.reason = "ambiguous"
		if len(named(s, d.Values)) > 2 || strings.Contains(rest, "|") {
			out.reason = "template"
		}
	case withdrawn.MatchString(rest) && !notOnly.MatchString(rest) && !d.begins(rest[len(butNot.FindString(rest)):]):
		out.reason = "negated"
	case lenient && strings.ContainsFunc(rest, denies):
		out.reason = "negated"
	case lenient && strings.ContainsFunc(text, warns):
		out.reason = "ambiguous"
	case strings.HasPrefix(strings.TrimLeft(rest, endMark+" "), "?"):
		out.reason = "ambiguous"
		if negation.MatchString(rest) {
			out.reason = "negated"
		}
	case lenient && (weakened(rest) || d.otherwise(rest) || goesOn.MatchString(next) || denialLine.MatchString(next)):
		out.reason = "ambiguous"
	case lenient && (unticked.MatchString(rest) || denied.MatchString(rest) && !notOnly.MatchString(rest) && !ticked.MatchString(rest) || denialCell.MatchString(rest)):
		out.reason = "negated"
	case lenient && (remarked(rest) || followed(rest)):
		out.reason = "ambiguous"
	default:
		out.value = value
		if signs == "brackets" {
			out.doubt = "brackets left from the template"
		}
	}
	return out
}

// lists reports whether another value follows a value, or the same one again. A more lenient one that is denied is a reason for
// the first: "IMPROVE (RELEASE is not possible yet)".
func (d *decisionRule) lists(value, rest string) bool {
	other, behind, ok := leading(rest[len(listing.FindString(rest)):], d.Values)
	denied := slices.Index(d.Values, other) < slices.Index(d.Values, value) && withdrawn.MatchString(behind)
	return ok && !denied
}

// begins reports whether a text begins with a value.
func (d *decisionRule) begins(s string) bool {
	_, _, ok := leading(s, d.Values)
	return ok
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

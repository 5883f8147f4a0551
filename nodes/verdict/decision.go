package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/nodes/internal/accept"
)

// A ruling is what was read of a decision: a value, or the reason why there is none.
type ruling struct {
	value  string
	reason string // missing, template, negated, undefined, ambiguous, conflict
	text   string // what stands there, for messages
	final  bool   // its label follows a word such as Final
	doubt  string // warning
}

// decide reads the decision of a review.
func decide(s *accept.State, r *review, d *decisionRule) ruling {
	var all []ruling
	for i, line := range r.lines {
		all = append(all, rulingsOf(r, i, line, d)...)
	}
	finals := slices.DeleteFunc(slices.Clone(all), func(x ruling) bool { return !x.final || x.value == "" })
	counted := all
	if len(finals) > 0 {
		counted = finals
	}
	values := distinct(counted)
	switch len(values) {
	case 0:
		return noRuling(all)
	case 1:
		got := values[0]
		if len(finals) > 0 && len(distinct(all)) > 1 {
			s.Warn("decision %s: an earlier one differs", got.value)
		}
		return settle(s, got, all, d)
	}
	harshest := values[0]
	for _, v := range values[1:] {
		if slices.Index(d.Values, v.value) > slices.Index(d.Values, harshest.value) {
			harshest = v
		}
	}
	if d.Conflict == "harsher" {
		s.Warn("%d different decisions; the harshest, %s, was taken", len(values), harshest.value)
		return harshest
	}
	return ruling{reason: "conflict", text: fmt.Sprintf("%s and %s; the harsher one is %s", values[0].value, values[1].value, harshest.value)}
}

// settle accepts a single value. Another line that negates or hedges takes the most lenient value away.
func settle(s *accept.State, got ruling, all []ruling, d *decisionRule) ruling {
	for _, x := range all {
		if x.value != "" || x.reason == "template" || x.reason == "undefined" {
			continue
		}
		if got.value == d.Values[0] && len(d.Values) > 1 && !got.final {
			return ruling{reason: "conflict", text: fmt.Sprintf("%s, and elsewhere %s", got.value, x.text)}
		}
		s.Warn("decision %s: another line is %s: %s", got.value, x.reason, x.text)
	}
	if got.doubt != "" {
		s.Warn("decision %s: %s", got.value, got.doubt)
	}
	return got
}

func distinct(all []ruling) []ruling {
	var out []ruling
	for _, x := range all {
		if x.value != "" && !slices.ContainsFunc(out, func(o ruling) bool { return o.value == x.value }) {
			out = append(out, x)
		}
	}
	return out
}

// noRuling returns the most telling reason.
func noRuling(all []ruling) ruling {
	for _, reason := range []string{"negated", "ambiguous", "undefined", "template"} {
		for _, x := range all {
			if x.reason == reason {
				return x
			}
		}
	}
	return ruling{reason: "missing", text: "no line says it"}
}

// rulingsOf reads the decisions of one line. A label alone takes the next line, when that is a
// value and nothing else.
func rulingsOf(r *review, i int, line string, d *decisionRule) []ruling {
	var out []ruling
	row := cells(line)
	for n, cell := range row {
		rest, final, ok := d.cut(cell)
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		value, delimited := afterDelimiter(rest)
		switch {
		case value == "" && n+1 < len(row):
			value, delimited = row[n+1], true
		case value == "":
			value, delimited = nextLine(r.lines[i+1:]), true
			if _, ok := exact(value, d.Values); !ok && !delimitsList(value, d.Values) {
				value = ""
			}
		}
		if value == "" || !delimited {
			continue
		}
		x := judge(value, d.Values)
		x.final = final
		out = append(out, x)
	}
	return out
}

// cut takes the label off a cell, and a word such as Final in front of it.
func (d *decisionRule) cut(cell string) (rest string, final, ok bool) {
	if rest, ok = d.label.cut(cell); ok {
		return rest, false, true
	}
	for _, word := range d.finals {
		behind, found := word.cut(cell)
		if !found {
			continue
		}
		if rest, ok = d.label.cut(strings.TrimLeft(behind, " :")); ok {
			return rest, true, true
		}
	}
	return "", false, false
}

// afterDelimiter returns what stands behind a colon, a dash, an equals sign or "is". Brackets may stand before it.
func afterDelimiter(rest string) (value string, ok bool) {
	s := strings.TrimSpace(rest)
	if strings.HasPrefix(s, "(") {
		if end := strings.IndexByte(s, ')'); end >= 0 {
			s = strings.TrimSpace(s[end+1:])
		}
	}
	if s == "" {
		return "", true
	}
	for _, delimiter := range []string{":", "=", "—", "–", "-", "→", "->", "is "} {
		if after, found := strings.CutPrefix(s, delimiter); found {
			return strings.TrimSpace(strings.TrimLeft(after, ":>= ")), true
		}
	}
	return "?", false
}

// nextLine returns the next line that is not empty, of the next two.
func nextLine(lines []string) string {
	for _, line := range lines[:min(2, len(lines))] {
		if s := bare(line); s != "" {
			return s
		}
	}
	return ""
}

func delimitsList(s string, values []string) bool { return len(named(s, values)) > 1 }

var (
	negation  = regexp.MustCompile(`(?i)\b(not|no|never|cannot|can't|don't|doesn't|won't|isn't|wouldn't|without|neither|nor|against)\b`)
	withdrawn = regexp.MustCompile(`(?i)^[ ,;:—–-]*(\?|(is|would be|should be|was|are) +(not|never|n't)|isn't|not\b|no\b *[.,!]|cannot|can't|never)`)
	hedged    = regexp.MustCompile(`(?i)^[ ,;:(—–-]*(if|once|unless|pending|when|provided|only|after|subject to|conditional|conditionally|as soon as|but|with reservations|candidate|blocked|later|soon|maybe|almost|nearly)\b`)
	// leads may stand right behind the most lenient value; any other word takes part of it back.
	leads = regexp.MustCompile(`(?i)^ *(because|since|as|now|today|immediately|approved|confirmed|granted|recommended|it)\b`)
	// reserved, anywhere in the value's own sentence, takes the most lenient value away.
	reserved = regexp.MustCompile(`(?i)\b(denied|refused|rejected|declined|withheld|withdrawn|revoked|retracted|rescinded|vetoed|overruled|overridden|suspended|conditional|conditionally|conditions|reservations|on hold|held back|postponed|deferred|delayed|pending|unless|until|subject to|provided that|not yet|not warranted|not justified)\b`)
	listing  = regexp.MustCompile(`(?i)^[ \]>)]*(\||/|,|;|&|→|->|=>|or\b|and\b|to\b|vs\b)[ <\[(]*`)
)

// judge reads the text behind the label: the first word must be a value as it is declared, and
// nothing may take it back.
func judge(text string, values []string) ruling {
	out := ruling{text: shorten(text)}
	s, signs := unwrap(text)
	names := named(s, values)
	if signs == "no" {
		out.reason = "negated"
		return out
	}
	value, rest, ok := leading(s, values)
	if !ok {
		out.reason = reasonOf(s, text, names)
		return out
	}
	switch {
	case listing.MatchString(rest) && followedByValue(rest, values):
		out.reason = "ambiguous"
		if len(names) > 2 || strings.Contains(rest, "|") {
			out.reason = "template"
		}
	case withdrawn.MatchString(rest):
		out.reason = "negated"
	case value == values[0] && len(values) > 1 && weakened(rest):
		out.reason = "ambiguous"
	default:
		out.value = value
		if signs == "brackets" {
			out.doubt = "brackets left from the template"
		}
	}
	return out
}

// weakened reports whether what follows the most lenient value leaves a doubt: doubt is never
// resolved towards it.
func weakened(rest string) bool {
	if hedged.MatchString(rest) {
		return true
	}
	if r, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " ")); unicode.IsLetter(r) && !leads.MatchString(rest) {
		return true
	}
	sentence, _, _ := strings.Cut(strings.ReplaceAll(rest, "!", "."), ". ")
	return reserved.MatchString(sentence)
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
	case strings.HasPrefix(text, "<") || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") || strings.Trim(text, "._ …") == "":
		return "template"
	}
	return "undefined"
}

// unwrap takes signs, quotation marks and brackets off. signs is "brackets" when brackets were there, "no"
// for a sign that denies.
func unwrap(text string) (s, signs string) {
	s = strings.TrimSpace(text)
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case denies(r):
			return s, "no"
		case unicode.Is(unicode.So, r) || strings.ContainsRune("\ufe0f \"“_'", r):
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
		if strings.EqualFold(word, v) && strings.Trim(rest, " .,;:!)]>}\"'”_—–-") == "" {
			return v, rest, true
		}
	}
	return "", "", false
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' || r == '.'
}

// exact reports whether a text is a value and nothing else.
func exact(s string, values []string) (string, bool) {
	s, _ = unwrap(s)
	v, rest, ok := leading(s, values)
	return v, ok && strings.Trim(rest, " .,;:!)]>}\"'”_") == ""
}

func followedByValue(rest string, values []string) bool {
	after := rest[len(listing.FindString(rest)):]
	_, _, ok := leading(after, values)
	return ok
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

func shorten(s string) string {
	const most = 80
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > most {
		r = append(r[:most], '…')
	}
	return "“" + string(r) + "”"
}

package verdict

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A status says what became of a score.
type status uint8

const (
	missing   status = iota // nothing like a score stands there
	invalid                 // numbers, but no score of the declared maximum
	ambiguous               // several, or a range
	na                      // marked as not applicable: neither 0 nor full marks
	warned                  // read, with a doubt
	good
)

func (s status) String() string {
	return [...]string{"missing", "invalid", "ambiguous", "na", "ok_warn", "ok"}[s]
}

// A reading is a score as it was read from one line.
type reading struct {
	status status
	value  float64
}

// readScore reads the score of a label from a line. others are the other labels: text from where one
// of them begins is not this one's.
func readScore(line string, l label, others []label, r scoreRule) reading {
	for _, part := range parts(line, append([]label{l}, others...)) {
		if got := readPart(part, l, r); got.status != missing {
			return got
		}
	}
	return reading{}
}

// parts cuts a line where another label begins behind a comma or semicolon.
func parts(line string, labels []label) []string {
	if strings.HasPrefix(strings.TrimSpace(line), "|") {
		return []string{line}
	}
	var out []string
	start := 0
	for i := 0; i < len(line); i++ {
		if line[i] != ',' && line[i] != ';' {
			continue
		}
		rest := strings.TrimLeft(line[i+1:], " ")
		if begins(rest, labels) || nextLabel.MatchString(rest[:min(len(rest), 80)]) {
			out = append(out, line[start:i])
			start = i + 1
		}
	}
	return append(out, line[start:])
}

// nextLabel is a label that is not declared: words, an optional number, a colon, a score.
var nextLabel = regexp.MustCompile(`^[A-Za-z][A-Za-z -]*[0-9.]* *: *[0-9]`)

func begins(s string, labels []label) bool {
	for _, l := range labels {
		if _, ok := l.cut(s); ok {
			return true
		}
	}
	return false
}

// readPart reads a line, or a row: there the first cell behind the label that holds a score counts.
func readPart(line string, l label, r scoreRule) reading {
	row := cells(line)
	for i, cell := range row {
		rest, ok := l.cut(cell)
		if !ok {
			continue
		}
		best := readValue(valueOf(rest, len(row) > 1), r)
		for _, next := range row[i+1:] {
			if best.status > invalid {
				return best
			}
			if got := readValue(next, r); got.status > best.status {
				best = got
			}
		}
		return best
	}
	return reading{}
}

var brackets = regexp.MustCompile(`\([^()]*\)|\[[^\[\]]*\]`)

// valueOf returns the text behind a label's delimiter. Words may stand before it ("total", "score"), numbers
// may not, brackets aside. A text without delimiter is "" unless it is a cell.
func valueOf(rest string, cell bool) string {
	bare := brackets.ReplaceAllString(rest, " ")
	at := strings.IndexAny(bare, ":=")
	if at < 0 {
		for _, dash := range []string{" — ", " – ", " - ", "—", "–", " → "} {
			if at = strings.Index(bare, dash); at >= 0 {
				at += len(dash) - 1
				break
			}
		}
	}
	digit := strings.IndexAny(bare, "0123456789")
	switch {
	case at < 0 || digit >= 0 && digit < at:
		// No delimiter: only blanks may stand before the number.
		if s := strings.TrimSpace(bare); digit >= 0 && strings.TrimSpace(bare[:digit]) == "" && s != bare || cell {
			return strings.TrimSpace(rest)
		}
		return ""
	case len(strings.Fields(bare[:at])) > 6 || joins.MatchString(bare[:at]):
		return ""
	}
	// The delimiter again, in the text with its brackets.
	after := strings.TrimSpace(bare[at+1:])
	if i := strings.LastIndex(rest, after); i >= 0 && !strings.ContainsAny(rest, "([") {
		after = strings.TrimSpace(rest[i:])
	}
	if after == "" {
		return strings.TrimSpace(strings.Trim(rest, ":= "))
	}
	return after
}

var (
	joins    = regexp.MustCompile(`(?i)\b(and|or|vs|versus|than)\b|[,&+]`)
	naRe     = regexp.MustCompile(`(?i)^(n/?a|n\.a\.|not (assessed|applicable|scored|rated|evaluated|available)|unassessed|unscored|[-–—]+ */ *[0-9.,]+|[-–—]+)(\W|$)`)
	arrow    = regexp.MustCompile(`→|->|=>|⇒|➜`)
	number   = regexp.MustCompile(`^(?:[0-9]{1,9}(?:\.[0-9]{1,9}|,[0-9]{1,2})?|\.[0-9]{1,9}|,[0-9]{1,2})$`) // 1,000 is 1 or 1000
	numeric  = regexp.MustCompile(`[-−–—+]?[0-9.,]*[0-9][0-9.,eE%]*`)
	overRe   = regexp.MustCompile(`(?i)^ *(?:/|out +of|of) *`)
	rangeRe  = regexp.MustCompile(`(?i)^ *(?:[-–—−~+×*]|to|or|\.\.+|…|and|minus|plus|less|times) *[0-9.]`)
	boundRe  = regexp.MustCompile(`(?i)(?:[<>≤≥≠~≈]=?|[=][<>]|\b(?:not|below|above|under|over|less than|more than|at least|at most|up to|between)) *$`)
	beforeRe = regexp.MustCompile(`(?i)\b(was|from|previous(?:ly)?|before|last|prior|earlier|target|threshold|need(?:s|ed)?|vs|versus|than)\b[^0-9]*$`)
)

// readValue reads the first complete number / maximum of a text.
func readValue(s string, r scoreRule) reading {
	s = strings.TrimSpace(s)
	if naRe.MatchString(s) {
		return reading{status: na}
	}
	found := good
	if at := arrow.FindAllStringIndex(s, -1); at != nil {
		if strings.ContainsAny(s[:at[0][0]], "0123456789") {
			found = warned
		}
		s = s[at[len(at)-1][1]:]
	}
	if bare := strings.TrimSpace(brackets.ReplaceAllString(s, " ")); strings.ContainsAny(bare, "0123456789") {
		s = bare
	}
	out := reading{}
	for at := 0; at < len(s); {
		m := numeric.FindStringIndex(s[at:])
		if m == nil {
			break
		}
		from, to := at+m[0], at+m[1]
		got := readAt(s, from, to, r)
		if got.status == good {
			got.status = found
		}
		if got.status > invalid {
			return got
		}
		if got.status > out.status {
			out = got
		}
		if got.value < 0 { // a score of the wrong kind: nothing behind it counts
			return reading{status: invalid}
		}
		at = to
	}
	return out
}

// wrong marks a complete score that is not acceptable.
var wrong = reading{status: invalid, value: -1}

// readAt reads the number that stands at s[from:to] and what follows.
func readAt(s string, from, to int, r scoreRule) reading {
	token := strings.TrimRight(s[from:to], ".,")
	to = from + len(token)
	before, after := s[:from], s[to:]
	if strings.HasSuffix(strings.TrimRight(before, " "), "/") {
		return reading{} // the maximum of something that is no number: a template
	}
	if joined(before) {
		return wrong // 0x3/4, $3/4, v3/4: part of something else
	}
	over := overRe.FindString(after)
	switch {
	case over == "" && rangeRe.MatchString(after), over == "" && fraction.MatchString(after):
		return reading{status: ambiguous}
	case !number.MatchString(token):
		if over != "" {
			return wrong
		}
		return reading{status: invalid}
	case boundRe.MatchString(near(before)):
		return reading{status: ambiguous}
	case over == "":
		if r.Bare && strings.TrimLeft(after, " .,;)") == "" {
			return within(parse(token), r)
		}
		return reading{status: invalid}
	}
	after = after[len(over):]
	m := numeric.FindStringIndex(after)
	if m == nil || m[0] != 0 {
		return reading{status: invalid}
	}
	max := strings.TrimRight(after[:m[1]], ".,")
	after = after[len(max):]
	switch {
	case !number.MatchString(max) || parse(max) != r.Max || strings.HasPrefix(strings.TrimLeft(after, " "), "/") || unit.MatchString(after):
		return wrong
	case rangeRe.MatchString(after) || another(after, r):
		return reading{status: ambiguous}
	}
	return within(parse(token), r)
}

// joined reports whether a number goes on to the left: a letter, a digit or a sign of money or counting.
func joined(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return r != utf8.RuneError && (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("$€£¥#@_", r))
}

// unit is a number's unit or the rest of a word: 3/4px.
var unit = regexp.MustCompile(`^[A-Za-z_%$€£]`)

// near is the end of a text: what qualifies a number stands close before it, and looking at all of
// the text for each number is not linear.
func near(s string) string {
	const most = 60
	return s[max(0, len(s)-most):]
}

// fraction is a number behind a number: 3 1/2.
var fraction = regexp.MustCompile(`^ +[0-9]`)

func within(v float64, r scoreRule) reading {
	if v > r.Max {
		return wrong
	}
	return reading{status: good, value: v}
}

func parse(s string) float64 {
	v, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	if err != nil {
		return -1
	}
	return v
}

// presentRe says that the score behind it is the newer one.
var presentRe = regexp.MustCompile(`(?i)\b(now|currently|today|this time|new|revised|corrected|final|finally)\b[^0-9]*$`)

var scoreRe = regexp.MustCompile(`(?i)([0-9.,]*[0-9]) *(?:/|out +of|of) *([0-9.,]*[0-9])`)

// another reports whether a second score of the maximum follows that is not said to be an older
// one or a limit.
func another(after string, r scoreRule) bool {
	for _, m := range scoreRe.FindAllStringSubmatchIndex(after, -1) {
		between := near(after[:m[0]])
		if parse(after[m[4]:m[5]]) == r.Max && (!beforeRe.MatchString(between) || presentRe.MatchString(between)) {
			return true
		}
	}
	return false
}

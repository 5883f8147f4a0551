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
		if got := readPart(part, l, others, r); got.status != missing {
			return got
		}
	}
	return reading{}
}

// parts cuts a line where another label begins behind a sign that sets it off.
func parts(line string, labels []label) []string {
	if strings.HasPrefix(strings.TrimSpace(line), "|") {
		return []string{line}
	}
	var out []string
	start := 0
	for i, r := range line {
		if !strings.ContainsRune(",;|·•", r) {
			continue
		}
		behind := i + utf8.RuneLen(r)
		rest := strings.TrimLeft(line[behind:], " ")
		if begins(rest, labels) || nextLabel.MatchString(rest[:min(len(rest), 80)]) {
			out = append(out, line[start:i])
			start = behind
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

// readPart reads a line, or a row: there the first cell behind the label that holds a score counts, up to
// another label.
func readPart(line string, l label, others []label, r scoreRule) reading {
	row := cells(line)
	for i, cell := range row {
		rest, ok := l.cut(cell)
		if !ok {
			continue
		}
		rest = upTo(rest, others)
		if bar := strings.TrimSpace(rest); strings.HasPrefix(bar, "|") { // a row without the outer bars
			row, i, rest = split(bar), -1, ""
		}
		best := readValue(l.valueOf(rest, len(row) > 1), r)
		for _, next := range row[i+1:] {
			next = bare(next)
			if best.status > invalid || begins(next, others) {
				break
			}
			if got := readValue(next, r); got.status > best.status {
				best = got
			}
		}
		return best
	}
	return reading{}
}

// upTo returns a text up to where one of the labels begins.
func upTo(text string, labels []label) string {
	for _, l := range labels {
		if before, _, ok := l.find(text); ok {
			text = before
		}
	}
	return text
}

var brackets = regexp.MustCompile(`\([^()]*\)|\[[^\[\]]*\]`)

// delimiters set a score off from its label.
var delimiters = regexp.MustCompile(`[:=]>?| ->| — | – | - |—|–| → | \.{3,}`)

// valueOf returns the text behind a label's delimiter. Words may stand before it ("total", "score"), numbers and
// words that make it another score ("target") may not, brackets aside; nor a second name, behind a
// name that has no number: "Surprise and Delight". A text without delimiter is "" unless it is a cell.
func (l label) valueOf(rest string, cell bool) string {
	// Brackets before the delimiter are no part of what is looked at, but keep their places.
	masked := brackets.ReplaceAllStringFunc(rest, func(s string) string { return strings.Repeat(" ", len(s)) })
	at := delimiters.FindStringIndex(masked)
	digit := strings.IndexAny(masked, "0123456789")
	if at == nil || digit >= 0 && digit < at[0] {
		// No delimiter: only blanks may stand before the number.
		if digit > 0 && strings.TrimSpace(masked[:digit]) == "" || cell {
			return strings.TrimSpace(rest)
		}
		return ""
	}
	between, numbered := masked[:at[0]], strings.ContainsAny(string(l), "0123456789")
	if len(strings.Fields(between)) > 6 || foreignRe.MatchString(between) || !numbered && joins.MatchString(between) {
		return ""
	}
	for _, note := range brackets.FindAllString(rest[:at[0]], -1) {
		if notedRe.MatchString(note) && !strings.ContainsAny(note, "0123456789") {
			return ""
		}
	}
	if after := strings.TrimSpace(rest[at[1]:]); after != "" {
		return after
	}
	return strings.TrimSpace(strings.Trim(rest, ":= "))
}

var (
	joins   = regexp.MustCompile(`(?i)\b(and|or)\b|[,&+]`)
	naRe    = regexp.MustCompile(`(?i)^(n ?/? ?a|n\.a\.|not (assessed|applicable|scored|rated|evaluated|available)|unassessed|unscored|[-–—]+ */ *[0-9.,]+|[-–—]+)(\W|$)`)
	arrow   = regexp.MustCompile(`→|->|=>|⇒|➜`)
	number  = regexp.MustCompile(`^(?:[0-9]{1,9}(?:\.[0-9]{1,9}|,[0-9]{1,2})?|\.[0-9]{1,9}|,[0-9]{1,2})$`) // 1,000 is 1 or 1000
	numeric = regexp.MustCompile(`[-−–—+]?[0-9.,]*[0-9][0-9.,eE%]*`)
	overRe  = regexp.MustCompile(`(?i)^ *(?:/|out +of|of) *`)
	rangeRe = regexp.MustCompile(`(?i)^ *(?:[-–—−~+×*±|]|to|or|bis|oder|ou|à|до|или|\.\.+|…|and|und|et|minus|plus|less|times) *[0-9.]`)
	// boundRe stands before a number that is no score: a limit, an estimate, a wish.
	boundRe = regexp.MustCompile(`(?i)(?:[<>≤≥≠~≈]=?|[=][<>]|\b(?:not(?: quite)?|below|above|under|over|less than|more than|at least|at most|up to|between|about|around|approx\.?|approximately|roughly|circa|nearly|almost|max(?:imum)?|min(?:imum)?|target|threshold|needs?|required?|(?:would|could|should|might|may|must)(?: easily)?(?: be| get| reach| become| score)?|aim(?:ing)? for|potential(?:ly)?|previous(?:ly)?|was)) *[:=]? *$`)
	// foreignRe names a score that is not this review's: "PA-05 target: 4/4".
	foreignRe = regexp.MustCompile(`(?i)\b(vs|versus|than|target|goal|threshold|minimum|maximum|limit|required|previous|last|prior|earlier|old|before)\b`)
	// notedRe does so in brackets.
	notedRe = regexp.MustCompile(`(?i)\b(target|goal|threshold|previous|last|prior|earlier|old)\b`)
	// ifRe stands behind a score that is not given, or not of this page: in its brackets too.
	ifRe = regexp.MustCompile(`(?i)^[ ,;(—–-]*(if|once|unless|provided|assuming|as soon as|after (the |these )?(fix|fixes|changes)|required|needed|possible|expected|target|goal)\b|^ of +[a-z]|^ *\?`)
	// deniedRe stands before one, in its clause.
	deniedRe = regexp.MustCompile(`(?i)\b(?:not|never|cannot|hardly|[a-z]+n't)\b[^,;.:!?()]*$|^ *(?:if|unless)\b`)
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
	if m := scoreRe.FindStringIndex(s); m != nil && ifRe.MatchString(s[m[1]:]) { // here, because brackets go away
		return reading{status: ambiguous}
	}
	if bare := strings.TrimSpace(brackets.ReplaceAllString(s, " ")); strings.ContainsAny(bare, "0123456789") {
		inside := brackets.FindString(s)
		got := firstScore(bare, found, r)
		if got.status == invalid && got.value == 0 && alone.MatchString(inside) {
			return firstScore(inside, found, r) // 75% (3/4)
		}
		return reading{got.status, max(0, got.value)}
	}
	got := firstScore(s, found, r)
	return reading{got.status, max(0, got.value)}
}

// alone is a score in brackets and nothing else.
var alone = regexp.MustCompile(`^\( *[0-9.,]+ *(/|(?i:out of|of)) *[0-9.,]+ *\)$`)

// firstScore reads the first complete score; one of the wrong kind is invalid with the value -1.
func firstScore(s string, found status, r scoreRule) reading {
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
		if got == wrong { // nothing behind it counts
			return wrong
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
	case strings.Contains(token, ".."):
		return reading{status: ambiguous}
	case !number.MatchString(token):
		if over != "" {
			return wrong
		}
		return reading{status: invalid}
	case boundRe.MatchString(near(before)) || deniedRe.MatchString(near(before)):
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
	case rangeRe.MatchString(after) || second(after, r):
		return reading{status: ambiguous}
	}
	return within(parse(token), r)
}

// joined reports whether a number goes on to the left: a letter, a digit or a sign of money or counting.
func joined(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return r != utf8.RuneError && (r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("$€£¥#@_±", r)) ||
		r == '\'' && len(before) > 1 && before[len(before)-2] >= '0' && before[len(before)-2] <= '9'
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

// second reports whether a second score of the maximum follows that is not said to be an older
// one or a limit.
func second(after string, r scoreRule) bool {
	for _, m := range scoreRe.FindAllStringSubmatchIndex(after, -1) {
		between := near(after[:m[0]])
		between = between[strings.LastIndexAny(between, ",;")+1:] // "4/4 in the last cycle, 2/4"
		if parse(after[m[4]:m[5]]) == r.Max && (!beforeRe.MatchString(between) || presentRe.MatchString(between)) {
			return true
		}
	}
	return false
}

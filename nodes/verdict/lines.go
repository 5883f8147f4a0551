package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// A ruling is a decision, or the reason why there is none.
type ruling struct {
	value  string
	reason string // missing, several, value, template
	text   string // what stands there, for messages
	form   bool   // the brackets of a form stand around the value
}

// read looks at every line that begins with the label. Lines that decide must agree, and none may be unclear.
func (d *decisionRule) read(review *markdown.Doc) ruling {
	var form, decided *ruling
	for i, r := range review.Rows {
		rest, ok := d.labelled(r)
		if !ok {
			continue
		}
		got := d.line(rest, r)
		if next := review.Rows[min(i+1, len(review.Rows)-1)]; got.reason == "" && goesOn(next) {
			got = ruling{reason: "value", text: "the line goes on: " + show(r) + " " + show(next)}
		}
		switch {
		case got.reason == "template":
			form = &got
		case got.reason != "":
			return got
		case decided != nil && decided.value != got.value:
			return ruling{reason: "several", text: fmt.Sprintf("two decisions, %s and %s", decided.value, got.value)}
		default:
			decided = &got
		}
	}
	switch {
	case decided == nil && form == nil:
		return ruling{reason: "missing", text: fmt.Sprintf("no line begins with %q and goes on with a value", d.Label)}
	case decided == nil:
		return *form
	}
	for _, r := range review.Rows {
		if _, ok := d.labelled(r); ok {
			continue
		}
		if d.within(r) {
			return ruling{reason: "several", text: "the label stands within another line: " + show(r)}
		}
		if other := d.alone(r); other != "" && other != decided.value {
			return ruling{reason: "several", text: "another value stands alone: " + show(r)}
		}
	}
	return *decided
}

// labelled returns what stands behind the label of a line that begins with it. A heading with nothing behind it is
// none, and so is a sentence that goes on from the label without a sign and names no value.
func (d *decisionRule) labelled(r markdown.Row) (rest string, ok bool) {
	cells, at := r.After(d.Label)
	if at < 0 {
		return "", false
	}
	rest = strings.Join(cells, " | ")
	first, _ := utf8.DecodeRuneInString(rest)
	if value, _ := bare(rest); value == "" || unicode.IsLetter(first) && !d.names(rest) {
		return "", false
	}
	return rest, true
}

// names reports whether one of the values is a word of a folded text.
func (d *decisionRule) names(text string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	})
	return slices.ContainsFunc(d.Values, func(v string) bool { return slices.Contains(words, markdown.Fold(v)) })
}

// goesOn reports whether a line is the rest of the sentence of the line before.
func goesOn(r markdown.Row) bool {
	first, _ := utf8.DecodeRuneInString(r.Cells[0])
	return r.Wrapped && unicode.IsLower(first)
}

// line reads what stands behind the label.
func (d *decisionRule) line(rest string, r markdown.Row) ruling {
	value, form := bare(rest)
	if v := d.value(value); v != "" {
		return ruling{value: v, form: form}
	}
	listed := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("|/, ", r) })
	all := len(listed) == len(d.Values) && len(listed) > 1
	for _, v := range d.Values {
		all = all && slices.Contains(listed, markdown.Fold(v))
	}
	if all {
		return ruling{reason: "template", text: "all values are listed: " + show(r)}
	}
	return ruling{reason: "value", text: "not exactly one of " + strings.Join(d.Values, ", ") + ": " + show(r)}
}

// value is the allowed value that a folded text is; "" when it is none.
func (d *decisionRule) value(text string) string {
	for _, v := range d.Values {
		if text == markdown.Fold(v) {
			return v
		}
	}
	return ""
}

// alone returns the value, as it is declared, that is all of a line, of a cell, or of what stands behind a colon.
func (d *decisionRule) alone(r markdown.Row) string {
	for _, cell := range r.Cells {
		value, _ := bare(strings.TrimSpace(cell[strings.LastIndexByte(cell, ':')+1:]))
		if slices.Contains(d.Values, value) {
			return value
		}
	}
	return ""
}

// bare cuts what may stand around a value off it: separators in front, a full stop, signs of code, and the brackets
// of a form, which form reports.
func bare(s string) (value string, form bool) {
	s = strings.Trim(strings.TrimLeft(s, ":=-| "), ". |")
	if inner, ok := between(s, "`", "`"); ok {
		return inner, false
	}
	for _, pair := range pairs {
		if inner, ok := between(s, pair[0], pair[1]); ok {
			return inner, true
		}
	}
	return s, false
}

// pairs are the signs that forms put around what is to be filled in.
var pairs = [][2]string{{"[", "]"}, {"(", ")"}, {"{", "}"}, {"<", ">"}, {`"`, `"`}, {"“", "”"}, {"'", "'"}}

// between cuts two signs off that stand around a text.
func between(s, open, end string) (string, bool) {
	inner, ok := strings.CutPrefix(s, open)
	if inner, whole := strings.CutSuffix(inner, end); ok && whole {
		return strings.TrimSpace(inner), true
	}
	return s, false
}

// within reports whether the label stands elsewhere in a line and a colon behind it: "My ship decision: ...".
// In `code` it does not count.
func (d *decisionRule) within(r markdown.Row) bool {
	label := markdown.Fold(d.Label)
	for _, cell := range r.Cells {
		cell = code.ReplaceAllString(markdown.Fold(cell), "")
		for {
			_, behind, ok := strings.Cut(cell, label)
			if !ok {
				break
			}
			if strings.HasPrefix(strings.TrimLeft(behind, "` "), ":") {
				return true
			}
			cell = behind
		}
	}
	return false
}

var code = regexp.MustCompile("`[^`]*`")

func show(r markdown.Row) string { return accept.Quote(strings.Join(r.Cells, " | ")) }

var (
	number = `([0-9]+(?:[.,][0-9]{1,2})?|\.[0-9]{1,2})`
	// Behind a dash stands a blank: "- 3/4" is a score, "-3/4" is none.
	score = regexp.MustCompile("^[:=` ]*(?:- )?[:=` ]*" + number + "[` ]*(?:/|⁄|∕|／|of|out of)[` ]*" + number +
		"[` ]*(?:\\([0-9.,]+ ?%\\))?[.,;` ]*$")
	digit = regexp.MustCompile(`[0-9]`)
	// The brackets of a form may stand around it: "[3]/4", "(3/4)".
	filled = regexp.MustCompile(`[\[({<]([0-9.][0-9.,/ ]*)[\])}>]`)
)

// read returns the one score of a label. ok is false when there is none, or several that differ.
func (rule *scoreRule) read(s *accept.State, review *markdown.Doc, label string) (value float64, ok bool) {
	unclear := ""
	for _, r := range review.Rows {
		rest, at := r.After(label)
		if at < 0 {
			continue
		}
		v, isScore := rule.line(rest)
		switch {
		case !isScore:
			unclear = "want number/" + strconv.FormatFloat(rule.Max, 'g', -1, 64) + ", got " + show(r)
		case ok && v != value:
			unclear = fmt.Sprintf("both %g and %g", value, v)
		default:
			value, ok = v, true
		}
	}
	if unclear == "" && !ok {
		unclear = "no line begins with it"
	}
	if unclear != "" {
		s.Warn("%s was not read: %s", label, unclear)
		return 0, false
	}
	return value, ok
}

// line reads the score behind a label: in its own cell, or in the first one behind it that holds a digit.
func (rule *scoreRule) line(rest []string) (float64, bool) {
	for i, cell := range rest {
		m := score.FindStringSubmatch(filled.ReplaceAllString(cell, "$1"))
		if m == nil && (digit.MatchString(cell) || i == 0 && strings.ContainsAny(cell, ":=")) {
			return 0, false
		}
		if m == nil {
			continue
		}
		v, most := parse(m[1]), parse(m[2])
		return v, most == rule.Max && v <= most
	}
	return 0, false
}

// parse reads a number with a decimal point or comma.
func parse(s string) float64 {
	v, _ := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64) // the expression allows numbers only
	return v
}

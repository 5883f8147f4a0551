package verdict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
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
		if line == "" {
			continue
		}
		all = append(all, d.rulings(r.lines, i)...)
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
		return d.settle(s, r, got, all)
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
func (d *decisionRule) settle(s *accept.State, r *review, got ruling, all []ruling) ruling {
	lenient := d.lenient(got.value) && !got.final
	for _, x := range all {
		if x.value != "" || x.reason == "template" || x.reason == "undefined" && !(lenient && shouted(x.text)) {
			continue
		}
		if lenient {
			return conflict(got, x)
		}
		s.Warn("decision %s: another line is %s: %s", got.value, x.reason, x.text)
	}
	if lenient {
		if x, ok := d.elsewhere(r, got.value); ok {
			return conflict(got, x)
		}
	}
	if text, ok := d.contradicted(r, got); ok {
		return ruling{reason: "ambiguous", text: got.value + ", and elsewhere " + text}
	}
	if got.doubt != "" {
		s.Warn("decision %s: %s", got.value, got.doubt)
	}
	return got
}

func conflict(got, other ruling) ruling {
	return ruling{reason: "conflict", text: fmt.Sprintf("%s, and elsewhere %s", got.value, other.text)}
}

// shouted reports whether a text begins with a word in capitals: a decision that is not declared,
// unlike "see below".
func shouted(text string) bool {
	word := strings.TrimFunc(strings.SplitN(text, " ", 2)[0], func(r rune) bool { return !unicode.IsLetter(r) })
	return len(word) > 1 && word == strings.ToUpper(word) && word != "N/A" && word != "TBD"
}

var older = regexp.MustCompile(`(?i)\b(previous|last|prior|earlier|old|former|first)\b`)

// elsewhere looks for the label behind other words, "Update: Ship Decision: IMPROVE", with another decision.
func (d *decisionRule) elsewhere(r *review, value string) (ruling, bool) {
	for _, line := range r.lines {
		before, rest, ok := d.label.find(line)
		if !ok || older.MatchString(before) {
			continue
		}
		text, _, ok := d.behind(rest)
		if !ok || text == "" {
			continue
		}
		if x := d.judge(text, ""); x.value != "" && x.value != value || x.reason == "negated" {
			if x.value != "" {
				x.text = x.value
			}
			return x, true
		}
	}
	return ruling{}, false
}

func (d *decisionRule) lenient(value string) bool { return len(d.Values) > 1 && value == d.Values[0] }

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

// rulings reads the decisions of one line. A label alone takes what stands below it, when that begins with a value.
func (d *decisionRule) rulings(lines []string, i int) []ruling {
	var out []ruling
	row := cells(lines[i])
	for n, cell := range row {
		rest, final, ok := d.cut(cell)
		if !ok {
			continue
		}
		text, own, ok := d.behind(rest)
		if !ok || !own {
			continue
		}
		last := i
		if text == "" {
			text = strings.Trim(strings.Join(row[n+1:], " | "), "| ")
		}
		if text == "" {
			text, last = d.below(lines, i)
		}
		if text == "" {
			continue
		}
		x := d.judge(text, next(lines, last))
		if x.reason == "template" && last == i { // the choice list in a heading, and the choice below
			if text, last = d.below(lines, i); text != "" {
				x = d.judge(text, next(lines, last))
			}
		}
		x.final = final
		switch lenient := d.lenient(x.value); {
		case lenient && introduced(lines, i):
			continue // quoted, an example, a wish
		case lenient && unchosen(lines[i]):
			x.value, x.reason = "", "template"
		}
		out = append(out, x)
	}
	return out
}

// unchosen reports whether the box in front of a line has no cross.
func unchosen(line string) bool {
	s := strings.TrimSpace(line)
	if item, ok := markdown.Item(s); ok {
		s = item
	}
	return strings.HasPrefix(s, "[ ]")
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

var (
	aside = regexp.MustCompile(`^[(\[][^()\[\]]*[)\]]`)
	// foreign says that a decision is not the review's own, or not meant.
	foreign = regexp.MustCompile(`(?i)\b(previous|previously|last|prior|earlier|old|former|draft|example|e\.g|template|sample|format|tentative|provisional|preliminary|proposed|not|if|unless|hypothetical|according|quoted?|says)\b`)
)

// behind returns what stands behind a colon, a dash, an equals sign, a bar, an arrow or "is". Brackets may
// stand before it; own is false when they say that the decision is another one. ok is false without a delimiter.
func (d *decisionRule) behind(rest string) (text string, own, ok bool) {
	s := strings.TrimSpace(rest)
	own = true
	if note := aside.FindString(s); note != "" {
		own = !foreign.MatchString(note)
		s = strings.TrimSpace(s[len(note):])
	}
	if s == "" {
		return "", own, true
	}
	for _, delimiter := range []string{":", "=", "—", "–", "-", "→", "|", "is "} {
		if after, found := strings.CutPrefix(s, delimiter); found {
			return strings.TrimSpace(strings.TrimLeft(after, ":>=| ")), own, true
		}
	}
	return "", own, false
}

// below returns the line that a label alone is about, and which one it is: the next one, when it begins with a value.
// Of several values in a row it is the one with a cross in its box; without one all of them are
// returned as one line, which is no decision.
func (d *decisionRule) below(lines []string, i int) (text string, last int) {
	options := d.options(lines, i)
	if len(options) == 0 {
		return "", i
	}
	first, checked := options[0], 0
	var values []string
	for _, o := range options {
		if o.box == 'x' {
			first, checked = o, checked+1
		}
		if !slices.Contains(values, o.value) {
			values = append(values, o.value)
		}
	}
	switch {
	case checked > 1 || checked == 0 && len(values) > 1:
		return strings.Join(values, " | "), options[len(options)-1].line
	case first.box == ' ':
		return "", i
	}
	return first.text, first.line
}

// An option is a line below a label that begins with a value.
type option struct {
	line        int
	text, value string
	box         byte // x: with a cross in its box, blank: without, 0: there is none
}

// options returns the lines behind one that begin with a value, up to the first that does not; behind the first, no
// sentence that begins with the word. A first line that names several values in another way is one, too.
func (d *decisionRule) options(lines []string, i int) []option {
	const most = 12
	var out []option
	for at := i + 1; at < min(len(lines), i+1+most); at++ {
		o := option{line: at, text: strings.TrimLeft(bare(lines[at]), ": ")}
		if strings.Trim(o.text, "-=_ ") == "" {
			continue
		}
		unwrapped, _ := unwrap(o.text)
		value, rest, ok := leading(unwrapped, d.Values)
		behind, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, " "))
		switch {
		case out == nil && !ok && len(named(o.text, d.Values)) < 2:
			return nil
		case out != nil && (!ok || unicode.IsLetter(behind) || unicode.IsDigit(behind)):
			return out
		case strings.Contains(lines[at], "[x]") || strings.Contains(lines[at], "[X]"):
			o.box = 'x'
		case strings.Contains(lines[at], "[ ]"):
			o.box = ' '
		}
		o.value = value
		out = append(out, o)
	}
	return out
}

// next returns the line behind one, and when that is empty the next one with a line end in front.
func next(lines []string, i int) string {
	for at := i + 1; at < min(len(lines), i+4); at++ {
		if s := bare(lines[at]); s != "" {
			if at == i+1 {
				return s
			}
			return "\n" + s
		}
	}
	return ""
}

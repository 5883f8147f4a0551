package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"dagrun.dev/internal/rules"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// Describe reads what the compiler must know of a prompt block; paths of problems are within it.
// Traits.Prompt holds what is known of the size (without Model and MaxOutput).
func Describe(with json.RawMessage) (nodes.Traits, error) {
	s, err := decode(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	d := describer{s: s, seen: map[string]bool{}}
	d.tr.Prompt = &nodes.PromptEstimate{}
	d.template()
	for _, name := range s.names() {
		d.variable(name, s.Vars[name])
	}
	for i, step := range s.Trim {
		d.trim(accept.Path("trim", fmt.Sprint(i)), step)
	}
	d.tr.Prompt.Files, d.tr.Prompt.Reads = d.tr.Files, d.tr.Reads
	return d.tr, nil
}

// describer collects the traits of one prompt block.
type describer struct {
	s    *settings
	tr   nodes.Traits
	seen map[string]bool // files and reads already listed
}

func (d *describer) problem(path, format string, args ...any) {
	d.tr.Problems = append(d.tr.Problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

func (d *describer) file(name string) {
	if !d.seen["f"+name] {
		d.seen["f"+name] = true
		d.tr.Files = append(d.tr.Files, name)
	}
}

func (d *describer) reads(name string) {
	if !d.seen["r"+name] {
		d.seen["r"+name] = true
		d.tr.Reads = append(d.tr.Reads, name)
	}
}

func (d *describer) template() {
	switch {
	case d.s.File != "" && d.s.Text != nil, d.s.File == "" && d.s.Text == nil:
		d.problem("", "want one of file and text")
	case d.s.File != "":
		d.file(d.s.File)
	default:
		d.tr.Prompt.Chars += int64(utf8.RuneCountInString(string(*d.s.Text)))
		d.say("prompt", string(*d.s.Text))
	}
}

// A text that is shorter is a name or a number and needs no line of a plan; a longer one is cut.
const noteLeast, noteMost = 40, 1000

// say notes a text of the specification on one line.
func (d *describer) say(name, text string) {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) < noteLeast {
		return
	}
	if len(line) > noteMost {
		line = append(line[:noteMost], []rune(" ...")...)
	}
	d.tr.Notes = append(d.tr.Notes, name+": "+string(line))
}

func (d *describer) variable(name string, v variable) {
	at := accept.Path("vars", name)
	sources := 0
	if name == border {
		d.problem(at, "the name is reserved: {%s} alone on its line divides the prompt into blocks", border)
	}
	if v.Text != nil {
		sources++
		d.tr.Prompt.Chars += int64(utf8.RuneCountInString(string(*v.Text)))
		d.say(name, string(*v.Text))
	}
	if v.File != "" {
		sources++
		d.file(v.File)
	}
	if v.Files != nil {
		sources++
		for _, i := range v.chosen(len(*v.Files)) {
			d.file((*v.Files)[i].Path)
		}
		d.tr.Notes = append(d.tr.Notes, name+": "+strings.Join(v.labels(), ", "))
	}
	if v.Order != "" {
		sources++
		if of, ok := d.s.Vars[v.Order]; !ok || of.Files == nil {
			d.problem(at+".order", "%q is not a variable with files%s", v.Order, d.hint(v.Order))
		}
	}
	if v.Artifact != "" {
		sources++
		d.reads(v.Artifact)
	}
	if v.Accumulator != "" {
		sources++
		d.reads(v.Accumulator)
	}
	if sources != 1 {
		d.problem(at, "want exactly one of text, file, files, order, artifact, accumulator")
	}
}

func (d *describer) trim(at string, step trimStep) {
	v, ok := d.s.Vars[step.Var]
	switch {
	case !ok:
		d.problem(at+".var", "no variable %q%s", step.Var, d.hint(step.Var))
	case step.By == "oldest" && v.Accumulator == "":
		d.problem(at+".by", "oldest needs an accumulator; %s is none", step.Var)
	case step.By == "valley" && v.Files == nil:
		d.problem(at+".by", "valley needs files; %s has none", step.Var)
	case step.By == "valley":
		for _, p := range step.Positions {
			if n := len(v.labels()); p > n {
				d.problem(at+".positions", "no position %d: %s has %d files", p, step.Var, n)
			}
		}
	}
	if d.s.Limit == 0 {
		d.problem(at, "nothing is trimmed without a limit")
	}
}

func (d *describer) hint(name string) string { return didYouMean(name, d.s.names()) }

func didYouMean(name string, known []string) string {
	if near := rules.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return "; none is declared"
	}
	return "; declared: " + strings.Join(known, ", ")
}

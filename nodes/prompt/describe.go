package prompt

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
)

// Traits are what the compiler must know of a node of this kind.
func (s *Settings) Traits() nodes.Traits {
	tr := s.Block()
	tr.Effect = "pure"
	tr.Outputs = map[string]string{"chars": "int", "tokens": "int"}
	tr.Prompt = nil
	if s.To == "" {
		tr.Problemf("to", "missing: a node of this kind names the artifact it writes")
	}
	tr.Write("to", s.To)
	return tr
}

// Block is what the compiler must know of a prompt block; paths of problems are within it.
// Traits.Prompt holds what is known of the size (without Model and MaxOutput).
func (s *Settings) Block() nodes.Traits {
	d := describer{s: s}
	d.tr.Prompt = &nodes.PromptEstimate{}
	d.template()
	for _, name := range s.names() {
		d.variable("vars."+name, name, s.Vars[name])
	}
	for i, step := range s.Trim {
		d.trim(fmt.Sprintf("trim.%d", i), step)
	}
	d.tr.Prompt.Files, d.tr.Prompt.Reads = d.tr.Files, d.tr.Reads
	return d.tr
}

// A describer collects the traits of one prompt block.
type describer struct {
	s  *Settings
	tr nodes.Traits
}

func (d *describer) template() {
	if !d.tr.OneOf("", "file, text", d.s.File != "", d.s.Text != nil) {
		return
	}
	d.tr.File(d.s.File)
	if d.s.Text != nil {
		d.text("prompt", string(*d.s.Text))
	}
}

// A text that is shorter is a name or a number and needs no line of a plan; a longer one is cut.
const noteLeast, noteMost = 40, 1000

// text counts a text of the specification, and notes it on one line.
func (d *describer) text(name, text string) {
	d.tr.Prompt.Chars += int64(utf8.RuneCountInString(text))
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) < noteLeast {
		return
	}
	if len(line) > noteMost {
		line = append(line[:noteMost], []rune(" ...")...)
	}
	d.tr.Notes = append(d.tr.Notes, name+": "+string(line))
}

func (d *describer) variable(at, name string, v variable) {
	if name == border {
		d.tr.Problemf(at, "the name is reserved: {%s} alone on its line divides the prompt into blocks", border)
	}
	d.tr.OneOf(at, "text, file, files, order, artifact, accumulator",
		v.Text != nil, v.File != "", v.Files != nil, v.Order != "", v.Artifact != "", v.Accumulator != "")
	if v.Text != nil {
		d.text(name, string(*v.Text))
	}
	d.tr.File(v.File)
	if v.Files != nil {
		for _, i := range v.chosen(len(*v.Files)) {
			d.tr.File((*v.Files)[i].Path)
		}
		d.tr.Notes = append(d.tr.Notes, name+": "+strings.Join(v.labels(), ", "))
	}
	if v.Record != "" && v.Files == nil {
		d.tr.Problemf(at+".record", "only files are recorded")
	}
	if of, ok := d.s.Vars[v.Order]; v.Order != "" && (!ok || of.Files == nil) {
		d.tr.Problemf(at+".order", "%q is not a variable with files%s", v.Order, didYouMean(v.Order, d.s.names()))
	}
	d.tr.Read(v.Artifact)
	d.tr.Read(v.Accumulator)
}

func (d *describer) trim(at string, step trimStep) {
	v, ok := d.s.Vars[step.Var]
	switch {
	case !ok:
		d.tr.Problemf(at+".var", "no variable %q%s", step.Var, didYouMean(step.Var, d.s.names()))
	case step.By == "oldest" && v.Accumulator == "":
		d.tr.Problemf(at+".by", "oldest needs an accumulator; %s is none", step.Var)
	case step.By == "valley" && v.Files == nil:
		d.tr.Problemf(at+".by", "valley needs files; %s has none", step.Var)
	case step.By == "valley":
		for _, p := range step.Positions {
			if n := len(v.labels()); p > n {
				d.tr.Problemf(at+".positions", "no position %d: %s has %d files", p, step.Var, n)
			}
		}
	}
	if d.s.Limit == 0 {
		d.tr.Problemf(at, "nothing is trimmed without a limit")
	}
}

package gates

import (
	"context"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// texts makes the checks that need no browser. Without bounds at least one match is wanted.
func (r *runner) texts(_ context.Context, of []*result) error {
	for _, x := range of {
		n, err := r.measureText(x.check.Text)
		if err != nil {
			return err
		}
		c := *x.check
		if !c.bounded() {
			one := 1.0
			c.Min = &one
		}
		x.Results = []measure{c.judge(n)}
	}
	return nil
}

func (r *runner) measureText(t *textCheck) (float64, error) {
	of := t.Of
	if of == nil {
		of = &accept.From{Artifact: r.set.Page.Artifact, File: r.set.Page.File}
	}
	text, err := of.Read(r.task)
	if err != nil {
		return 0, err
	}
	if t.SharedWith == nil {
		re, err := regexp.Compile(t.Matches)
		if err != nil {
			return 0, nodes.Permanent(&nodes.Error{Category: "config", Message: "text.matches", Err: err})
		}
		return float64(len(re.FindAllStringIndex(text, -1))), nil
	}
	other, err := t.SharedWith.Read(r.task)
	if err != nil {
		return 0, err
	}
	return shared(words(visible(other)), words(visible(text))), nil
}

// visible takes tags, comments, styles and scripts out of a text. A text without any stays as it is.
func visible(text string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	hidden := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.StartTagToken:
			name, _ := z.TagName()
			if n := string(name); n == "script" || n == "style" {
				hidden = n
			}
			b.WriteByte(' ')
		case html.EndTagToken:
			name, _ := z.TagName()
			if string(name) == hidden {
				hidden = ""
			}
			b.WriteByte(' ')
		case html.TextToken:
			if hidden == "" {
				b.Write(z.Text())
			}
		}
	}
}

const leastWord = 5 // letters: shorter words are in every text

// words returns the distinct longer words of a text.
func words(text string) map[string]bool {
	set := map[string]bool{}
	between := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	for _, w := range strings.FieldsFunc(strings.ToLower(text), between) {
		if len([]rune(w)) >= leastWord {
			set[w] = true
		}
	}
	return set
}

// shared returns which share of the words in of stands in in. Of nothing, nothing is shared.
func shared(of, in map[string]bool) float64 {
	if len(of) == 0 {
		return 0
	}
	n := 0
	for w := range of {
		if in[w] {
			n++
		}
	}
	return float64(n) / float64(len(of))
}

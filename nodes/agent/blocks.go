package agent

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/prompt"
)

// borders returns where the blocks of a prompt end, but for the last one. Offsets stay right when something is put
// behind the prompt.
func borders(blocks []string) []int {
	var ends []int
	end := 0
	for _, b := range blocks[:len(blocks)-1] {
		end += len(b)
		ends = append(ends, end)
	}
	return ends
}

// blocks returns the prompt cut at its borders.
func (q *question) blocks() []string {
	var list []string
	begin := 0
	for _, end := range q.borders {
		list = append(list, q.prompt[begin:end])
		begin = end
	}
	return append(list, q.prompt[begin:])
}

// headed returns the system text and the prompt for a program that keeps what it has read up to the end of its system
// text only: the fixed blocks in front are part of that, unless they are too long for an argument. What a run
// wrote never speaks as the system.
func (q *question) headed() (system, prompt string) {
	n := min(q.fixed, len(q.borders))
	if n == 0 {
		return q.system, q.prompt
	}
	end := q.borders[n-1]
	system, prompt = q.prompt[:end], q.prompt[end:]
	if q.system != "" {
		system = q.system + "\n\n" + system
	}
	if len(system) > mostArgument {
		return q.system, q.prompt
	}
	return system, prompt
}

var _ nodes.Sharer = Kind{}

// Shared returns what the plan knows of the blocks that the service is to keep: for the APIs each up to a border, for the
// claude agent what goes into its system text.
func (Kind) Shared(with json.RawMessage, open func(path string) (io.ReadCloser, error)) []nodes.PromptBlock {
	s, err := read(with)
	if err != nil || s.Cache == "off" || !slices.Contains([]string{"claude", "anthropic", "openai"}, s.Provider) {
		return nil
	}
	p := prompt.Sketch(s.Prompt, open)
	if p == nil {
		return nil
	}
	system, err := s.System.read(&nodes.Task{File: open})
	if err != nil {
		return nil
	}
	last := len(p.Blocks) - 1
	if s.Provider == "claude" {
		if last = min(last, p.Fixed()); last > 0 {
			p.Blocks, last = []string{strings.Join(p.Blocks[:last], "")}, 1
		}
	}
	var list []nodes.PromptBlock
	before := s.Provider + "\n" + s.Model + "\n" + s.BaseURL + "\n" + system
	for i, text := range p.Blocks[:last] {
		b := nodes.PromptBlock{Digest: digest(before + text)[:16], Chars: int64(utf8.RuneCountInString(text)), Reads: p.Reads[i]}
		if i == 0 {
			b.Chars += int64(utf8.RuneCountInString(system))
		}
		list = append(list, b)
		before = b.Digest
	}
	return list
}

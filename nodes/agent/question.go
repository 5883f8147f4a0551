package agent

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/prompt"
)

// A question is what is asked.
type question struct {
	task *nodes.Task
	set  *settings
	// blocks are the prompt in parts, as the template's borders divide it; fixed is how many in front hold nothing
	// that a run wrote.
	blocks []string
	fixed  int
	system string
	// folder is the agent's private working folder, with the given files in it.
	folder string
	// session is what the agent works in that outlives the attempt; nil = nothing does.
	session *session
	now     func() time.Time
}

// prompt is the whole text that is asked.
func (q *question) prompt() string { return strings.Join(q.blocks, "") }

// add puts a text behind the prompt.
func (q *question) add(text string) { q.blocks[len(q.blocks)-1] += text }

// evidence returns a case about a failure of this question, with the runner's clock.
func (q *question) evidence(from *evidence.Table) evidence.Case {
	return evidence.Case{From: from, Now: q.now(), Zone: time.Local, Tries: q.task.Attempt}
}

// assemble makes the question of an attempt, and keeps it.
func assemble(t *nodes.Task, s *settings) (*question, *nodes.Result, error) {
	a, err := prompt.Assemble(t, s.Prompt)
	if err != nil {
		return nil, nil, err
	}
	res := &nodes.Result{Warnings: a.Warnings, Notes: a.Notes}
	q := &question{task: t, set: s, blocks: a.Blocks, fixed: a.Fixed()}
	if q.system, err = s.System.read(t.File); err != nil {
		return nil, res, err
	}
	var warning string
	if q.session, warning, err = s.open(t, digest(q.system+"\n"+q.prompt())); err != nil {
		return nil, res, err
	}
	if warning != "" {
		res.Warnings = append(res.Warnings, warning)
	}
	if t.Feedback != "" {
		q.add("\n\n---\nYour previous answer was not accepted: " + t.Feedback +
			"\nGive the whole answer again, without this mistake.\n")
	}
	if strings.TrimSpace(q.prompt()) == "" {
		return nil, res, nodes.Permanent(nodes.Fail("config", "the prompt is empty"))
	}
	instruction, err := s.instruction()
	if err != nil {
		return nil, res, err
	}
	q.add(instruction)
	if q.folder = q.base(workName); q.session != nil && q.session.resumed {
		q.session.ask(q, instruction)
	} else if err = workFolder(t, s, q.folder); err != nil {
		return nil, res, err
	}
	return q, res, t.KeepFrom("prompt.md", strings.NewReader(q.prompt()))
}

func (src *textSource) read(open func(path string) (io.ReadCloser, error)) (string, error) {
	switch {
	case src == nil:
		return "", nil
	case src.File == "":
		return src.Text, nil
	}
	return accept.ReadText(open, "system", src.File)
}

// withSystem puts the system text before the prompt, for programs that have no place for it.
func withSystem(q *question) string {
	if q.system == "" {
		return q.prompt()
	}
	return q.system + "\n\n---\n\n" + q.prompt()
}

// headed returns the system text and the prompt for a program that keeps what it has read up to the end of its system
// text only: the fixed blocks in front are part of that, unless they are too long for an argument. What a run
// wrote never speaks as the system.
func (q *question) headed() (system, prompt string) {
	n := min(q.fixed, len(q.blocks)-1)
	if n <= 0 {
		return q.system, q.prompt()
	}
	system = strings.Join(q.blocks[:n], "")
	if q.system != "" {
		system = q.system + "\n\n" + system
	}
	if len(system) > mostArgument {
		return q.system, q.prompt()
	}
	return system, strings.Join(q.blocks[n:], "")
}

var _ nodes.Sharer = Kind{}

// Shared returns what the plan knows of the blocks that the service is to keep: for the APIs each up to a border, for
// the claude agent what goes into its system text.
func (Kind) Shared(with json.RawMessage, open func(path string) (io.ReadCloser, error)) []nodes.PromptBlock {
	s, err := read(with)
	if err != nil || s.Cache == "off" || !slices.Contains([]string{"claude", "anthropic", "openai"}, s.Provider) {
		return nil
	}
	p := prompt.Sketch(s.Prompt, open)
	if p == nil {
		return nil
	}
	system, err := s.System.read(open)
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
		chars := utf8.RuneCountInString(text)
		if i == 0 {
			chars += utf8.RuneCountInString(system)
		}
		before = digest(before + text)[:16]
		list = append(list, nodes.PromptBlock{Digest: before, Chars: int64(chars), Reads: p.Reads[i]})
	}
	return list
}

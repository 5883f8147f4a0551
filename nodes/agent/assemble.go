package agent

import (
	"strings"

	"dagrun.dev/nodes"
)

// assemble makes the text of the question and the folder that it is asked in, and keeps the text.
func (q *question) assemble() (*nodes.Result, error) {
	t, s := q.task, q.set
	a, err := s.Prompt.Assemble(t)
	if err != nil {
		return nil, err
	}
	res := &nodes.Result{Warnings: a.Warnings, Notes: a.Notes}
	q.blocks, q.fixed = a.Blocks, a.Fixed()
	if q.system, err = s.System.read(t.File); err != nil {
		return res, err
	}
	var warning string
	if q.session, warning, err = s.open(t, digest(q.system+"\n"+q.prompt())); err != nil {
		return res, err
	}
	if warning != "" {
		res.Warnings = append(res.Warnings, warning)
	}
	if t.Feedback != "" {
		q.add("\n\n---\nYour previous answer was not accepted: " + t.Feedback +
			"\nGive the whole answer again, without this mistake.\n")
	}
	if strings.TrimSpace(q.prompt()) == "" {
		return res, nodes.Permanent(nodes.Fail("config", "the prompt is empty"))
	}
	q.add(s.instruction())
	if q.folder = q.base(workName); q.session != nil && q.session.resumed {
		q.continueWork(s.instruction())
	} else if err = workFolder(t, s, q.folder); err != nil {
		return res, err
	}
	return res, t.KeepFrom("prompt.md", strings.NewReader(q.prompt()))
}

// continuation is what an agent is asked whose interrupted work is continued.
const continuation = "Your work on this was cut by a limit of turns or money. What you have done so far is still " +
	"there, and so are the files in your working folder. Finish the work now, in as few steps as you can, " +
	"and give the whole answer as it was asked for.\n"

// continueWork has the agent continue its work in the place of the whole question. Its system text stays what it was.
func (q *question) continueWork(instruction string) {
	q.system, _ = q.headed()
	q.blocks, q.fixed = []string{continuation + instruction}, 0
}

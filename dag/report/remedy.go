package report

import (
	"cmp"
	"fmt"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A remedy is what the user can do about a run that does not go on by itself.
type remedy struct {
	words    string
	commands []string // behind "dagrun "; the directory of the run is added, or the category of the failure
}

var resume = []string{"resume"}

// remedies are the ways out of a pause, by its reason. See wayOut for the others.
var remedies = map[machine.Pause]remedy{
	machine.PauseUser:       {"Resume. --rerun NODE runs a node from its start, --without NODE skips one.", resume},
	machine.PauseNodeFailed: {fixTheCause, []string{explainCategory, "report errors", "resume"}},
	machine.PauseRepeated:   {fixTheCause, []string{explainCategory, "report errors", "resume"}},
	machine.PauseEscalation: {"Resume: every question is answered.", resume},
	machine.PausePerson: {"Do what the reason asks for (log in, pay, grant access), then resume.",
		[]string{explainCategory, "resume"}},
	machine.PauseQuota: {"Resume after that time; with --longest-wait the run waits for it by itself.", resume},
	machine.PausePart: {"What was selected is done. Go on with the rest, under the plan of the run or as the spec is now:",
		[]string{"resume --all", "apply"}},
}

// faults are those of a pause whose reason is the disk, by what is wrong with it.
var faults = map[string]string{
	"full":  "Free space on the disk, then resume.",
	"quota": "Your quota of the disk is used up: remove files of yours or have it raised, then resume.",
	"read-only": "The disk is mounted read-only, as systems do after a fault: see what they say of it (dmesg), " +
		"mount it for writing, then resume.",
	"permission": "The system refuses to write there: look at owner, permissions and attributes of what the reason " +
		"names (ls -ld, lsattr), then resume.",
	"large": "A file may not grow so far: raise the limit (ulimit -f), then resume.",
	"broken": "The disk reports an error, which more space does not mend: see what the system says of it (dmesg), " +
		"copy the run to a sound disk if it is the disk, then resume.",
}

// explainCategory is the command that says what a category of failure means.
const explainCategory = "explain category "

const fixTheCause = "Fix the cause, then resume. If you changed the spec or an input of it, run `dagrun apply`."

// remedy fills in what the user can do: in words, and as commands ready to be typed.
func (s *Status) remedy(st *machine.State) {
	way := s.wayOut(st)
	s.Next = way.words
	for _, c := range way.commands {
		if c == explainCategory {
			if v, ok := st.NodeByID(s.Node); ok && v.Last != nil && v.Last.Category != "" {
				s.NextSteps = append(s.NextSteps, "dagrun "+c+v.Last.Category)
			}
			continue
		}
		s.NextSteps = append(s.NextSteps, "dagrun "+c+" --output-dir "+s.Dir)
	}
}

func (s *Status) wayOut(st *machine.State) remedy {
	switch {
	case s.Status == machine.RunDone:
		return remedy{}
	case s.Status == machine.RunBroken && st.Graph().Plan.Ticks != nil:
		return remedy{"This tick has failed. Begin the next one, or resume this one anyway.",
			[]string{"apply", "resume --again"}}
	case s.Status == machine.RunBroken:
		return remedy{"Resume it anyway, or start over.", []string{"resume --again", "apply --fresh"}}
	case len(s.Questions) > 0:
		q := s.Questions[0]
		answer := q.Recommended
		if answer == "" {
			answer = "ANSWER"
		}
		if s.Status == machine.RunRunning && !s.Stopped {
			return remedy{"Answer the question; the process that runs it takes the answer.",
				[]string{"respond " + q.ID + " " + answer}}
		}
		return remedy{"Answer the question, then resume.", []string{"respond " + q.ID + " " + answer, "resume"}}
	case s.Stopped && s.Reverted != "":
		return remedy{"Resume from there.", resume}
	case s.Stopped:
		return remedy{"Resume where it stopped.", resume}
	case s.Status == machine.RunRunning || s.Status == machine.RunEnding:
		return remedy{"It is running. Ctrl-C there pauses it, `dagrun cancel` ends it.", nil}
	case s.refused(st):
		return remedy{"It was refused. Resuming asks again; cancelling ends the run.", []string{"resume", "cancel"}}
	case s.Reason == machine.PauseBudget:
		return remedy{"Raise the budget in the spec and run `dagrun apply`, or for this run only:",
			[]string{"resume" + s.moreBudget(st)}}
	}
	if s.Reason == machine.PauseDisk {
		return remedy{cmp.Or(faults[st.Run().Pause.Fault], faults["full"]), resume}
	}
	if s.Ending != "" {
		return remedy{"Resume: the run then comes to its end (" + s.Ending + ").", resume}
	}
	if r, ok := remedies[s.Reason]; ok {
		if r.words == fixTheCause && s.Node != "" {
			r.commands = []string{explainCategory, "show " + s.Node, "resume"}
		}
		return r
	}
	return remedy{"Resume when the cause is fixed.", resume}
}

// refused reports whether the run waits because the answer to an approval was one that refuses.
func (s *Status) refused(st *machine.State) bool {
	v, ok := st.NodeByID(s.Node)
	return ok && s.Reason == machine.PauseNodeFailed && v.Last != nil && v.Last.Category == machine.CategoryRefused
}

// moreBudget is the flag that raises the limit which holds the run: to twice what it was, or to what the run is
// expected to need if that is more.
func (s *Status) moreBudget(st *machine.State) string {
	l := st.Ledger()
	need := dag.Amount{USD: l.Spent.USD + l.Reserved.USD, Tokens: l.Spent.Tokens + l.Reserved.Tokens}
	if v, ok := st.NodeByID(s.Node); ok {
		need.USD += v.Reserve.USD
		need.Tokens += v.Reserve.Tokens
	}
	b := l.Budget
	have, most := st.PassedOver()
	switch {
	case most > 0 && have > most:
		return fmt.Sprintf(" --failures %d", max(have, 2*most))
	case b.CapUSD > 0 && need.USD > b.CapUSD:
		usd := max(need.USD, 2*b.CapUSD)
		if s.Projected != nil {
			usd = max(usd, *s.Projected)
		}
		return fmt.Sprintf(" --cap-usd %.2f", float64((usd+9_999)/10_000)/100) // cents, rounded up
	case b.CapTokens > 0 && need.Tokens > b.CapTokens:
		return fmt.Sprintf(" --cap-tokens %d", max(need.Tokens, 2*b.CapTokens))
	case b.Wall > 0:
		return " --wall " + (2 * b.Wall.D()).String()
	}
	return ""
}

package dagtest

import (
	"encoding/json"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/testing/hosttest"
)

// suite is what a simulation that is held to the suite of hosts keeps beside its state: what hosts keep on disk.
type suite struct {
	acts    int               // done so far
	content map[string]string // of objects, by digest
	handed  map[string]int    // attempts that have handed something on, by node and generation
	saw     map[string]string
}

// Outcome carries a case of the suite out.
func (s *Sim) Outcome(c *hosttest.Case) (*hosttest.Outcome, error) {
	s.Case, s.Resumes = c, 0
	s.suite = suite{content: map[string]string{}, handed: map[string]int{}, saw: map[string]string{}}
	if c.Stays {
		s.State.HostStays(true)
	}
	if err := s.Run(); err != nil {
		return nil, err
	}
	state, err := s.State.AppendSnapshot(nil)
	return &hosttest.Outcome{Events: s.Events, State: state, Saw: s.suite.saw}, err
}

// act does what comes from outside next, if that is before everything else.
func (s *Sim) act(next attempt, running bool, wake time.Time) (acted bool, err error) {
	if s.Case == nil || s.suite.acts == len(s.Case.Acts) {
		return false, nil
	}
	act := s.Case.Acts[s.suite.acts]
	at := Epoch.Add(act.At)
	if running && next.end.Before(at) || !wake.IsZero() && wake.Before(at) {
		return false, nil
	}
	s.suite.acts++
	s.pass(at)
	switch act.Do {
	case hosttest.Kill:
		return true, s.restart()
	case hosttest.Interrupt:
		return true, s.record(&machine.RunPausedBody{Reason: machine.PauseUser, Message: "paused by an interrupt"})
	case hosttest.Resume:
		return true, s.record(&machine.RunResumedBody{By: "resume"})
	case hosttest.Cancel:
		return true, s.record(&machine.RunPausedBody{Reason: machine.PauseCancel, Message: "enough"})
	}
	return true, s.record(&machine.EscalationAnsweredBody{ID: s.State.Escalations()[0].ID, Answer: act.To, By: "user"})
}

// question is what an approval asks.
func (s *Sim) question(c machine.Command) *machine.EscalationOpenedBody {
	var with struct {
		Message string
		Options []string
	}
	_ = json.Unmarshal(s.node(c.Node).With, &with)
	return s.State.Ask(machine.EscalationOpenedBody{
		Kind: machine.AskApproval, Node: c.Node, Message: with.Message, Options: with.Options}, s.now)
}

// see notes what an attempt of a fake node is given, and returns how long it takes.
func (s *Sim) see(a attempt) time.Duration {
	artifacts := map[string]string{}
	var entries []string
	g := s.State.Graph()
	for _, name := range a.node.Reads {
		if name == "notes" {
			for _, v := range s.files.Entries(g, a.node.ID, name) {
				entries = append(entries, s.suite.content[v.Digest])
			}
			continue
		}
		v, _ := s.files.Visible(g, a.node.ID, name)
		artifacts[name] = s.suite.content[v.Digest]
	}
	handed := key(a.node.ID, a.gen)
	s.suite.saw[hosttest.Content(a.node.ID, a.no)] = hosttest.Given(artifacts, entries, s.suite.handed[handed])
	s.suite.handed[handed]++
	return hosttest.StepOf(a.node.Labels, a.no).Takes
}

// scripted is how an attempt of a fake node ends.
func (s *Sim) scripted(a attempt) machine.Outcome {
	o := machine.Outcome{Status: dag.StatusCompleted}
	if hosttest.StepOf(a.node.Labels, a.no).Fails {
		o = machine.Outcome{Status: dag.StatusFailed, Category: "transient", Message: "as the script says"}
	}
	o.Body.CostUSD = a.node.Reserve.USD
	return o
}

// publish records what an attempt of a fake node has written.
func (s *Sim) publish(a attempt) error {
	if s.Case == nil {
		return nil
	}
	content := hosttest.Content(a.node.ID, a.no)
	digest := strings.Repeat("0", 8) + content
	s.suite.content[digest] = content
	for _, name := range append(a.node.Writes, a.node.Appends...) {
		b := &machine.ArtifactWrittenBody{
			Node: a.node.ID, Generation: a.gen, Attempt: a.no, Name: name, Path: name, Digest: digest,
			Size: int64(len(content)), Entry: name == "notes",
		}
		if err := s.record(b); err != nil {
			return err
		}
	}
	return nil
}

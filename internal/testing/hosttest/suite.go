// Package hosttest is the suite of everything that carries a run on: what a host has to do of which the machine knows
// nothing. The local host passes it, and so do the doubles that tests use in its place.
//
// It asks for no speed and looks into no directory.
package hosttest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A Host carries a case out, from RUN_CREATED to where the acts are done and the run has ended or paused. Time is
// virtual.
type Host func(t testing.TB, c *Case) *Outcome

// A Case is a run and what is done to it.
type Case struct {
	Plan *dag.Plan // nodes of the kind "fake", see Step
	Acts []Act     // in order of their instants
	// Stays has the host wait where only an answer can carry the run on.
	Stays bool
}

// An Act is something that comes from outside.
type Act struct {
	At time.Duration // since the start
	Do What
	To string // the answer
}

// What an act does.
type What int

const (
	Interrupt What = iota // the user asks for a pause
	Kill                  // the process dies; the next one begins at once and resumes the run
	Resume                // the run that has paused goes on
	Cancel
	Answer // of the one open question
)

// An Outcome is what a host leaves.
type Outcome struct {
	Events []machine.Event   // the log; the plan is attached to RUN_CREATED
	State  []byte            // its state, as AppendSnapshot gives it
	Saw    map[string]string // by node.attempt: what an attempt of a fake node was given, see Given
}

// A Step is what an attempt of a fake node does. Steps stand in the label "do", one word an attempt, the last one for
// ever: ok, fail (category transient), with how long it takes behind a colon.
type Step struct {
	Fails bool
	Takes time.Duration
}

// StepOf returns the step of an attempt.
func StepOf(labels map[string]string, attempt int) (s Step) {
	words := strings.Fields(labels["do"])
	if len(words) == 0 {
		return s
	}
	verb, takes, _ := strings.Cut(words[min(attempt, len(words))-1], ":")
	s.Fails = verb == "fail"
	s.Takes, _ = time.ParseDuration(takes)
	return s
}

// Content is what an attempt writes into each artifact and entry of its node.
func Content(node string, attempt int) string { return fmt.Sprintf("%s.%d", node, attempt) }

// Given words what an attempt was given: artifacts (none = -), entries, and how many attempts have handed something on.
func Given(artifacts map[string]string, entries []string, handedOn int) string {
	var parts []string
	for name, content := range artifacts {
		if content == "" {
			content = "-"
		}
		parts = append(parts, name+"="+content)
	}
	slices.Sort(parts)
	return strings.TrimSpace(fmt.Sprintf("%s [%s] %d", strings.Join(parts, " "), strings.Join(entries, " "), handedOn))
}

// Run holds a host to the suite.
func Run(t *testing.T, h Host) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := c.plan()
			p.Format, p.Name = dag.Format, "suite"
			p.Categories = []dag.Category{
				{Name: "config", Class: "hard", Then: "fail"},
				{Name: "transient", Class: "transient", Then: "retry", Breaker: 1},
			}
			for i := range p.Nodes {
				n := &p.Nodes[i]
				if n.Kind == "" {
					n.Kind = "fake"
				}
				if n.Effect == "" {
					n.Effect = dag.Pure
				}
				n.Retry.Attempts = max(1, n.Retry.Attempts)
				if len(n.Appends) > 0 { // kinds name in their settings what they append to
					n.Labels = maps.Clone(n.Labels)
					if n.Labels == nil {
						n.Labels = map[string]string{}
					}
					n.Labels["appends"] = n.Appends[0]
				}
			}
			o := h(t, &Case{Plan: p, Acts: c.acts, Stays: c.stays})
			o.check(t)
			if got := o.story(); got != c.story {
				t.Errorf("recorded\n%s\nwant\n%s", got, c.story)
			}
			for who, want := range c.saw {
				if got := o.Saw[who]; got != want {
					t.Errorf("%s was given %q, want %q", who, got, want)
				}
			}
		})
	}
}

// check holds what is true of every run: the log replays to the state, and nothing was started that could pass the cap.
func (o *Outcome) check(t *testing.T) {
	t.Helper()
	st := new(machine.State)
	var last time.Time
	for i := range o.Events {
		e := &o.Events[i]
		if e.Seq != int64(i+1) || e.Time.Before(last) {
			t.Errorf("event %d of %v comes after one of %v as %d", i+1, e.Time, last, e.Seq)
		}
		last = e.Time
		if err := st.Apply(e); err != nil {
			t.Fatal(err)
		}
		if l := st.Ledger(); l.Budget.CapUSD > 0 && l.Spent.USD+l.Reserved.USD > l.Budget.CapUSD {
			t.Errorf("event %d: %s spent and %s reserved of %s", e.Seq, l.Spent.USD, l.Reserved.USD, l.Budget.CapUSD)
		}
	}
	replayed, err := st.AppendSnapshot(nil)
	if err != nil || !bytes.Equal(replayed, o.State) {
		t.Errorf("the log replays to another state (%v):\n%s\n%s", err, replayed, o.State)
	}
}

// story tells what has happened, a word or two an event.
func (o *Outcome) story() string {
	var words []string
	for i := range o.Events {
		switch b := o.Events[i].Body.(type) {
		case *machine.StartedBody:
			if !b.Queued {
				words = append(words, fmt.Sprintf("start %s.%d", b.Node, b.Attempt))
			}
		case *machine.FinishedBody:
			words = append(words, fmt.Sprintf("%s %s.%d", b.Status, b.Node, b.Attempt))
		case *machine.BreakerChangedBody:
			words = append(words, "breaker "+b.State)
		case *machine.EscalationOpenedBody:
			words = append(words, "asked "+b.Node)
		case *machine.EscalationAnsweredBody:
			words = append(words, "answered "+b.Answer)
		case *machine.RunPausedBody:
			words = append(words, "paused "+string(b.Reason))
		case *machine.RunInterruptedBody:
			words = append(words, "died")
		case *machine.RunResumedBody:
			words = append(words, "resumed")
		case *machine.RunEndedBody:
			words = append(words, map[bool]string{false: "completed", true: "failed"}[b.Failed])
		}
	}
	return strings.Join(words, ", ")
}

// Categories is a table with one category of every kind.
func Categories() []dag.Category {
	return []dag.Category{
		{Name: "auth", Class: "hard", Then: "stop", Account: true},
		{Name: "config", Class: "hard", Then: "fail"},
		{Name: "fatal", Class: "fatal", Then: "fail"},
		{Name: "quota", Class: "transient", Then: "wait", Account: true},
		{Name: "rate_limited", Class: "transient", Then: "retry", Attempts: 5, Breaker: 1, Retry: &dag.RetryChange{
			Base: new(dag.Duration(time.Minute)), Factor: new(2.0), Cap: new(dag.Duration(5 * time.Minute))}},
		{Name: "soft", Class: "soft", Then: "retry"},
		{Name: "transient", Class: "transient", Then: "retry", Breaker: 1},
	}
}

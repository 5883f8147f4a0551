package executor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A breakerScript drives one breaker of a state, and answers what the machine asks of it: ok, bad (each began when it
// ends), wait:D, began-earlier:ok and began-earlier:bad (began before everything), tick. What is recorded is printed as
// state[failures/consecutive failures].
func breakerScript(t *testing.T, spec dag.Breaker, script string, restart bool) string {
	t.Helper()
	p := &dag.Plan{Format: dag.Format, Name: "p", Breakers: []dag.Breaker{spec}, Categories: []dag.Category{{Name: "transient", Class: "transient", Then: "retry", Breaker: 1}}}
	for i := range 400 {
		p.Nodes = append(p.Nodes, dag.Node{ID: fmt.Sprint("n", i), Kind: "k", Effect: "pure", Breaker: spec.Name, OnFail: "continue", Retry: dag.Retry{Attempts: 1}})
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	st, now, early, next := new(machine.State), time.Unix(1700000000, 0).UTC(), 0, 10
	var got []string
	apply := func(b machine.Body) {
		e := machine.New(now, b)
		if _, ok := b.(*machine.RunCreatedBody); ok {
			e.Plan = g
		}
		if err := st.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() {
		for {
			st.Advance(now)
			cmds, _ := st.Decide(now, 0)
			if len(cmds) == 0 || cmds[0].Op != machine.Count {
				return
			}
			c := count(cmds[0].Breaker, now)
			apply(c)
			shown := c.Counts.ConsecBad
			if spec.Window > 0 { // rows do not matter there, and successes are not recorded
				shown = 0
			}
			got = append(got, fmt.Sprintf("%s[%d/%d]", c.State, c.Counts.Failures, shown))
			if (c.State == "open") != !c.Until.IsZero() {
				t.Errorf("state %s with until %v", c.State, c.Until)
			}
		}
	}
	end := func(id string, good bool) {
		o := machine.Outcome{Status: dag.StatusFailed, Category: "transient"}
		if good {
			o = machine.Outcome{Status: dag.StatusCompleted}
		}
		apply(st.Settle(id, o, now).Body)
	}
	apply(&machine.RunCreatedBody{RunID: "r", Schema: machine.Schema})
	for i := range 10 {
		apply(&machine.StartedBody{Node: fmt.Sprint("n", i), Generation: 1, Attempt: 1})
	}
	for _, step := range strings.Fields(script) {
		if restart { // a new process knows nothing but what was recorded
			raw, err := st.AppendSnapshot(nil)
			if err == nil {
				st, err = machine.RestoreSnapshot(raw, g)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		switch verb, rest, _ := strings.Cut(step, ":"); verb {
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(d)
		case "tick":
			ask()
		case "ok", "bad":
			id := fmt.Sprint("n", next)
			next++
			apply(&machine.StartedBody{Node: id, Generation: 1, Attempt: 1})
			end(id, verb == "ok")
			ask()
		case "began-earlier":
			end(fmt.Sprint("n", early), rest == "ok")
			early++
			ask()
		default:
			t.Fatalf("unknown step %q", step)
		}
	}
	return strings.Join(got, " ")
}

// Every transition of a breaker is recorded, and a process that starts in any state goes on
// from the last record (L-2). Each script runs undisturbed and with a restart before each step.
func TestBreakerTransitions(t *testing.T) {
	minute := dag.Breaker{Name: "api", Failures: 2, OpenFor: dag.Duration(time.Minute), Probes: 1}
	two := dag.Breaker{Name: "api", Failures: 1, OpenFor: dag.Duration(time.Minute), Probes: 2}
	window := dag.Breaker{Name: "api", Failures: 3, Window: dag.Duration(time.Minute), OpenFor: dag.Duration(time.Minute), Probes: 1}
	for _, c := range []struct {
		name, script, want string
		spec               dag.Breaker
	}{
		{"opens at the threshold", "bad bad", "closed[1/1] open[0/0]", minute},
		{"a success between starts the count anew", "bad ok bad", "closed[1/1] closed[1/0] closed[2/1]", minute},
		{"successes of a healthy breaker are not recorded", "ok ok ok", "", minute},
		{"stays open until its time", "bad bad wait:59s tick", "closed[1/1] open[0/0]", minute},
		{"half-open when its time has come", "bad bad wait:60s tick", "closed[1/1] open[0/0] half-open[0/0]", minute},
		{"a good probe closes", "bad bad wait:61s tick ok", "closed[1/1] open[0/0] half-open[0/0] closed[0/0]", minute},
		{"a bad probe opens", "bad bad wait:61s tick bad", "closed[1/1] open[0/0] half-open[0/0] open[0/0]", minute},
		{"opens for the whole time again", "bad bad wait:61s tick bad wait:59s tick wait:1s tick",
			"closed[1/1] open[0/0] half-open[0/0] open[0/0] half-open[0/0]", minute},
		{"two probes close together", "bad wait:60s tick ok ok", "open[0/0] half-open[0/0] half-open[0/0] closed[0/0]", two},
		{"one of two probes opens", "bad wait:60s tick ok bad", "open[0/0] half-open[0/0] half-open[0/0] open[0/0]", two},
		{"a late good end of an earlier call is a probe", "bad bad began-earlier:ok", "closed[1/1] open[0/0] half-open[0/0] closed[0/0]", minute},
		{"a late bad end of an earlier call says nothing new", "bad bad began-earlier:bad wait:60s tick began-earlier:bad",
			"closed[1/1] open[0/0] half-open[0/0]", minute},
		{"failures far apart do not fill a window", "bad wait:10m bad wait:10m bad wait:10m bad",
			"closed[1/0] closed[1/0] closed[1/0] closed[1/0]", window},
		{"failures leave the window one by one", "bad wait:50s bad wait:50s bad wait:50s bad wait:5s bad", "closed[1/0] closed[2/0] closed[2/0] closed[2/0] open[0/0]", window},
		{"failures near each other do, whatever succeeds between", "bad ok bad wait:10s ok bad",
			"closed[1/0] closed[2/0] open[0/0]", window},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restart=%v", c.name, restart), func(t *testing.T) {
				if got := breakerScript(t, c.spec, c.script, restart); got != c.want {
					t.Errorf("%s\n got  %s\n want %s", c.script, got, c.want)
				}
			})
		}
	}
}

// 150 good ends with 10 failures spread among them never open a breaker that counts
// consecutive failures.
func TestBreakerDoesNotAddUpForEver(t *testing.T) {
	spec := dag.Breaker{Name: "api", Failures: 3, OpenFor: dag.Duration(time.Minute), Probes: 1}
	script := strings.Repeat(strings.Repeat("ok ", 15)+"bad wait:1h ", 10)
	if got := breakerScript(t, spec, script, true); strings.Contains(got, "open") {
		t.Errorf("opened: %s", got)
	}
}

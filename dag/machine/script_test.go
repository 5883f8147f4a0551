package machine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

var update = flag.Bool("update", false, "rewrite the expected output of testdata/machine")

// TestScripts runs testdata/machine/*.txt. A script is a list of steps, each followed by ---- and
// what the machine says. Steps:
//
//	plan {json}                  create a run of a plan
//	decide [free]                ask, and show the answer; records are applied, starts are recorded
//	ask [free]                   ask, and show the answer, nothing more: time is not moved for it
//	end NODE STATUS k=v ...      end the running attempt: category, after (Retry-After), until
//	                             (a duration from now), cost, tokens, permanent, msg, values
//	apply TYPE {json}            apply an event
//	adopt {json}                 adopt another plan; "invalidated" etc. come after it in a second object
//	pass DURATION                let time pass
//	show [NODE ...]              statuses and what blocks them
//	ledger                       money
//	questions                    the open ones
//	question {json}              show what is asked where a host asks this, and open it
//	breakers                     what is recorded of them
//	pending                      what a cancel would run, what begins anew when the run goes on, clean-up that ran too early
//	warnings                     those of nodes
//	stays                        the host goes on waiting for answers
//	active                       for how long the run has been active
//	view WHAT                    what readers are given of notices, files, undo actions, ...: a line each
//	attempts [NODE ...]          what is known of those of nodes: times, counts, the last end
//	scope NODE OTHER ...         what expressions of a node see of others
//	undo-scope NODE OTHER ...    the same of those of its undo action
//	reload                       snapshot and restore; later answers must be the same
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/machine/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(string(old))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(old) {
				t.Errorf("%s differs; run the test with -update and read the diff.\n%s", file, got)
			}
		})
	}
}

func runScript(text string) string {
	x := script{now: epoch, s: new(State)}
	var out strings.Builder
	for _, block := range strings.SplitAfter(text, "\n\n") {
		step, _, found := strings.Cut(block, "\n----\n")
		if !found && !strings.HasSuffix(strings.TrimRight(block, "\n"), "\n----") && strings.HasPrefix(block, "#") {
			out.WriteString(block) // a comment
			continue
		}
		step = strings.TrimRight(strings.TrimSuffix(strings.TrimRight(step, "\n"), "----"), "\n")
		if strings.TrimSpace(step) == "" {
			continue
		}
		x.out.Reset()
		for _, line := range strings.Split(step, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, " ") {
				x.step(joined(step, line))
			}
		}
		fmt.Fprintf(&out, "%s\n----\n%s\n", step, x.out.String())
	}
	return out.String()
}

// joined adds the indented lines that follow a line.
func joined(step, line string) string {
	_, rest, _ := strings.Cut(step, line+"\n")
	for _, l := range strings.Split(rest, "\n") {
		if !strings.HasPrefix(l, " ") {
			break
		}
		line += l
	}
	return line
}

type script struct {
	s   *State
	now time.Time
	out bytes.Buffer
}

func (x *script) printf(format string, args ...any) { fmt.Fprintf(&x.out, format+"\n", args...) }

func (x *script) apply(b Body, g *dag.Graph) {
	e := New(x.now, b)
	e.Plan = g
	restored := x.restored()
	if err := x.s.Apply(&e); err != nil {
		x.printf("error: %v", err)
	}
	if restored != nil { // nil before the first event
		x.alike(restored, e)
	}
}

// alike holds that a state that was read from a snapshot makes the same of an event as the one that has folded all events.
func (x *script) alike(restored *State, e Event) {
	raw, err := AppendPayload(nil, e.Body)
	if err == nil {
		e.Body, err = DecodePayload(e.Type, raw)
	}
	if err != nil {
		return // no event that a log could hold
	}
	_ = restored.Apply(&e) // an error is printed of the other one
	want, _ := x.s.AppendSnapshot(nil)
	if got, err := restored.AppendSnapshot(nil); err != nil || !bytes.Equal(got, want) {
		x.printf("after %s a state that was restored before it differs: %v\n%s\n%s", e.Type, err, got, want)
	}
}

func (x *script) graph(src string) *dag.Graph {
	p := new(dag.Plan)
	if err := dag.DecodeJSON([]byte(src), p); err != nil {
		x.printf("plan: %v", err)
		return nil
	}
	p.Format = dag.Format
	g, err := dag.NewGraph(p)
	if err != nil {
		x.printf("%v", err)
	}
	return g
}

func (x *script) step(line string) {
	cmd, rest, _ := strings.Cut(line, " ")
	switch cmd {
	case "plan":
		if g := x.graph(rest); g != nil {
			x.s, x.now = new(State), epoch
			x.apply(&RunCreatedBody{RunID: "run", Name: g.Plan.Name, PlanDigest: "p1", Schema: Schema, Seed: 1}, g)
		}
	case "adopt":
		src, extra, _ := strings.Cut(rest, " // ")
		b := &PlanAdoptedBody{}
		if extra != "" {
			if err := json.Unmarshal([]byte(extra), b); err != nil {
				x.printf("%v", err)
			}
		}
		b.PlanDigest, b.Previous = x.s.Run().PlanDigest+"'", x.s.Run().PlanDigest
		if g := x.graph(src); g != nil {
			x.apply(b, g)
		}
	case "decide", "ask":
		x.decide(cmd == "decide", rest)
	case "end":
		x.end(strings.Fields(rest))
	case "apply":
		typ, raw, _ := strings.Cut(rest, " ")
		b, err := DecodePayload(Type(typ), []byte(raw))
		if err != nil {
			x.printf("error: %v", err)
			return
		}
		x.apply(b, nil)
	case "pass":
		d, err := time.ParseDuration(rest)
		if err != nil {
			x.printf("%v", err)
		}
		x.now = x.now.Add(d)
	case "show":
		x.show(strings.Fields(rest))
	case "ledger":
		l := x.s.Ledger()
		x.printf("spent %s USD (assumed %s), %d tokens; reserved %s USD, %d tokens", l.Spent.USD, l.Assumed, l.Spent.Tokens, l.Reserved.USD, l.Reserved.Tokens)
	case "questions":
		for _, q := range x.s.Escalations() {
			x.printf("open %s", q.ID)
		}
	case "question":
		var b EscalationOpenedBody
		if err := json.Unmarshal([]byte(rest), &b); err != nil {
			x.printf("%v", err)
		}
		asked := x.s.Ask(b, x.now)
		x.printf("record%s", x.payload(asked))
		x.apply(asked, nil)
	case "breakers":
		for _, v := range x.s.Breakers() {
			b, at, ok := x.s.BreakerRecord(v.Breaker)
			k := x.s.breakers[x.s.breakAt[v.Breaker]]
			x.printf("%s %s, opened %d times, %d probes, hold %s; recorded %t %s %s, until %s, changed %s", v.Breaker, v.State, k.Openings,
				k.probing, x.since(v.Hold), ok, b.State, b.Cause, x.since(b.Until), x.since(at))
		}
	case "pending":
		cleanup, undo := x.s.Pending()
		x.printf("clean-up %v, undo %v, anew %v, too early %v", cleanup, undo, x.s.Renewed(), x.s.CleanedUp())
	case "warnings":
		for i := range int32(x.s.Graph().Len()) {
			if v := x.s.NodeAt(i); v.Last != nil && len(v.Last.Warnings) > 0 {
				x.printf("%s: %s", v.Node.ID, strings.Join(v.Last.Warnings, " | "))
			}
		}
	case "stays":
		x.s.HostStays(true)
	case "active":
		v := x.s.Run()
		x.printf("active %s, ticking %t", v.Active, v.Ticking)
	case "view":
		x.view(rest)
	case "attempts":
		for i := range int32(x.s.Graph().Len()) {
			if id := x.s.Graph().Node(i).ID; rest == "" || slices.Contains(strings.Fields(rest), id) {
				x.attempts(id)
			}
		}
	case "scope", "undo-scope":
		x.scope(cmd == "scope", strings.Fields(rest))
	case "reload":
		x.reload()
	default:
		x.printf("unknown step %q", cmd)
	}
}

func (x *script) view(what string) {
	switch what {
	case "notices":
		for _, n := range x.s.Notices() {
			x.printf("%d to %d on %s, %d missed: %s %q %.30s", n.Of, n.To, n.On, n.Missed, n.Type, n.Stage, n.Payload)
		}
		x.printf("missed %d", x.s.Missed())
	case "published":
		for _, v := range x.s.Published() {
			x.printf("%s of %s %d.%d: %s, stands %q, before %q, counted %q", v.Path, v.Node, v.Generation, v.Attempt,
				v.Standing, v.Stands(), v.Before, v.Counted)
		}
	case "costs":
		for i := range int32(x.s.Graph().Len()) {
			v := x.s.NodeAt(i)
			x.printf("%s: %s USD, %d tokens", v.Node.ID, v.Cost, v.Usage.Total())
		}
		x.printf("used %d tokens", x.s.Ledger().Usage.Total())
	case "holdup":
		x.printf("waits for %v", x.s.Holdup())
	case "calls":
		for _, o := range x.s.OpenCalls() {
			x.printf("open %s", o.CallID)
		}
	case "gates":
		for _, v := range x.s.Gates() {
			x.printf("%s of %s: %s", v.Gate, v.Node, v.Status)
		}
	case "issues":
		for _, v := range x.s.Issues() {
			x.printf("%s of %s: %s %q, severity %q, opened %s, resolved %s", v.IssueID, v.Node, v.Status, v.Title, v.Severity,
				x.since(v.Opened), x.since(v.Resolved))
		}
	case "pull requests":
		for _, v := range x.s.PullRequests() {
			x.printf("%s %s", v.URL, v.Title)
		}
	case "checkpoints":
		for _, v := range x.s.Checkpoints() {
			x.printf("%s of generation %d", v.ID, v.Generation)
		}
	case "states":
		x.printf("run %s, stable %q", x.s.DeclaredState(""), x.s.Run().Stable)
		for _, v := range x.s.Sections() {
			x.printf("%s: %s, stable %t", v.Section, v.State, v.Stable)
		}
		for _, b := range x.s.BackToStable() {
			x.printf("back%s", x.payload(b))
		}
	case "run":
		v := x.s.Run()
		x.printf("resumed %d times, failed %q, active %s", v.Resumes, v.Failed, v.Active)
	case "records": // as the snapshot has them
		raw, err := x.s.AppendSnapshot(nil)
		var held struct {
			Breakers []json.RawMessage `json:"breakers"`
			Items    []json.RawMessage `json:"work_items"`
			Plain    json.RawMessage   `json:"plain_work_items"`
		}
		if err := cmp.Or(err, json.Unmarshal(raw, &held)); err != nil {
			x.printf("%v", err)
		}
		for _, one := range append(held.Breakers, held.Items...) {
			x.printf("%s", one)
		}
		x.printf("plain %s", held.Plain)
	case "undone":
		for _, v := range x.s.Compensations() {
			x.printf("%s in %q: %s %s%s, archive %q, told %t, event %d %s", v.Node, v.Stage, v.Action, v.Status,
				strings.TrimSuffix(": "+v.Failure, ": "), v.Archive, v.Told, v.Seq, x.since(v.Time))
		}
	case "errors":
		for _, e := range x.s.Errors() {
			x.printf("event %d: %s %d.%d %s %s", e.Seq, e.Node, e.Generation, e.Attempt, e.Category, e.Message)
		}
	case "reverts":
		for _, v := range x.s.Reverts() {
			x.printf("to %s by event %d", v.Checkpoint, v.Seq)
		}
	case "reuse": // of results, where plans are compared
		for i := range int32(x.s.Graph().Len()) {
			r, left := x.s.Record(i), x.s.ResultAt(i)
			categories, failed := x.s.Failure(i)
			x.printf("%s %+v; left %s %s %s; failed %t %v", x.s.Graph().Node(i).ID, r, left.Status, left.Fingerprint, left.Values, failed, categories)
		}
	case "facts": // that expressions may read of the run
		x.printf("plan %s, %d waiting %v", x.s.PlanDigest(), x.s.Count(Waiting), x.s.ScopeOf("").Run())
	}
}

func (x *script) scope(work bool, words []string) {
	sc := x.s.UndoScopeOf(words[0])
	if work {
		sc = x.s.ScopeOf(words[0])
	}
	for _, id := range words[1:] {
		v, ok := sc.View(id)
		if !ok {
			x.printf("%s: not in sight, expanded %t", id, x.s.Expanded(id))
			continue
		}
		x.printf("%s: %s %s, generation %d, %s, expanded %t", id, v.Status, v.Category, v.Generation, v.Out, x.s.Expanded(id))
		if v.Items != nil {
			for _, item := range v.Items() {
				x.printf("  %s: %s %s", item.Key, item.Status, item.Out)
			}
		}
	}
}

func (x *script) since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return "in " + t.Sub(x.now).String()
}

var opNames = [...]string{"start", "evaluate", "expand", "record", "cancel", "resolve", "recheck", "count", "adopt", "compensate"}

func (x *script) decide(act bool, rest string) {
	free := 10
	if rest != "" {
		fmt.Sscan(rest, &free)
	}
	if act {
		x.s.Advance(x.now)
	}
	cmds, wake := x.s.Decide(x.now, free)
	for _, c := range cmds {
		line := opNames[c.Op]
		if c.Node != "" && (c.Op != Record) {
			line += fmt.Sprintf(" %s %d.%d", c.Node, c.Generation, c.Attempt)
		}
		if n, ok := x.s.NodeByID(c.Node); ok && c.Op == Start && c.Reserve != n.Node.Reserve {
			line += fmt.Sprintf(" reserving %s USD, %d tokens", c.Reserve.USD, c.Reserve.Tokens)
		}
		if q := c.Breaker; q != nil {
			line += fmt.Sprintf(" %s, %s", q.Breaker.Name, q.Last.State)
			if o := q.Outcome; o != nil {
				line += fmt.Sprintf(": %s %s", o.Node, cmp.Or(o.Category, "completed"))
			}
		}
		if c.Body != nil {
			line += x.payload(c.Body)
		}
		x.printf("%s", line)
		switch {
		case !act:
		case c.Op == Start:
			x.apply(&StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Reserve: c.Reserve}, nil)
		case c.Body != nil:
			x.apply(c.Body, nil)
		}
	}
	if len(cmds) == 0 {
		x.printf("nothing")
	}
	if !wake.IsZero() {
		x.printf("ask again %s", x.since(wake))
	}
}

func (x *script) payload(b Body) string {
	raw, err := AppendPayload(nil, b)
	if err != nil {
		raw = []byte(err.Error())
	}
	return fmt.Sprintf(" %s %s", New(x.now, b).Type, raw)
}

func (x *script) end(words []string) {
	if _, ok := x.s.NodeByID(words[0]); !ok {
		x.printf("there is no %s", words[0])
		return
	}
	o := Outcome{Status: dag.Status(words[1])}
	for _, w := range words[2:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "category":
			o.Category = v
		case "after":
			o.RetryAfter, _ = time.ParseDuration(v)
		case "until":
			d, _ := time.ParseDuration(v)
			o.WaitUntil = x.now.Add(d)
		case "cost":
			var f float64
			fmt.Sscan(v, &f)
			o.Body.CostUSD, _ = dag.Dollars(f)
			o.Body.CostKind = dag.CostReported
		case "tokens":
			fmt.Sscan(v, &o.Body.Usage.Output)
		case "permanent":
			o.Permanent = true
		case "msg":
			o.Message = v
		default:
			x.printf("unknown word %q", w)
		}
	}
	e := x.s.Settle(words[0], o, x.now)
	b := e.Body.(*FinishedBody)
	line := string(b.Status)
	if b.Final {
		line += " final"
	}
	if b.Category != "" {
		line += fmt.Sprintf(" %s (%s)", b.Category, b.Class)
	}
	if b.CostKind != "" {
		line += fmt.Sprintf(" cost %s %s", b.CostUSD, b.CostKind)
	}
	if b.Stop {
		line += " stop"
	}
	if !b.RetryAt.IsZero() {
		line += " retry " + x.since(b.RetryAt)
	}
	if !b.WaitUntil.IsZero() {
		line += " wait " + x.since(b.WaitUntil)
	}
	for _, w := range b.Warnings {
		line += "; warning: " + w
	}
	x.printf("%s", line)
	x.apply(b, nil)
}

func (x *script) show(only []string) {
	run := x.s.Run()
	if len(only) == 0 {
		line := fmt.Sprintf("run %s", run.Status)
		if run.Status == RunPause {
			line += fmt.Sprintf(" %s: %s", run.Pause.Reason, run.Pause.Message)
		}
		x.printf("%s", line)
	}
	for i := range int32(x.s.Graph().Len()) {
		v := x.s.NodeAt(i)
		if len(only) > 0 && !strings.Contains(" "+strings.Join(only, " ")+" ", " "+v.Node.ID+" ") {
			continue
		}
		line := fmt.Sprintf("%s %s", v.Node.ID, v.Status)
		if v.Generation > 1 || v.Attempt > 1 || v.Failures > 0 {
			line += fmt.Sprintf(" generation %d attempt %d failures %d", v.Generation, v.Attempt, v.Failures)
		}
		if v.Blocked.By != "" {
			line += strings.TrimRight(fmt.Sprintf(" (%s %s", v.Blocked.By, v.Blocked.Name), " ")
			if !v.Blocked.Until.IsZero() {
				line += " " + x.since(v.Blocked.Until)
			}
			line += ")"
		}
		x.printf("%s", line)
	}
}

func (x *script) attempts(id string) {
	v, _ := x.s.NodeByID(id)
	i, _ := x.s.graph.Index(id)
	line := fmt.Sprintf("%s first %s, started %s, finished %s, again %s; %d failures in all", id, x.since(v.First), x.since(v.Started),
		x.since(v.Finished), x.since(v.RetryAt), v.AllFailures)
	if v.Fingerprint != "" {
		line += ", fingerprint " + v.Fingerprint
	}
	for _, x := range []struct {
		is   bool
		text string
	}{
		{v.Took != "", "took effect: " + v.Took}, {v.Unresolved, "unresolved"}, {v.Queued, "queued"}, {v.Soft, "soft"}, {v.Stale, "stale"},
		{x.s.Expanded(id), "expanded"},
		{v.Recorded != v.Status, "by the events " + v.Recorded.String()}, {v.Failures > 0, fmt.Sprint("of which ", x.s.FailedWith(i))},
		{v.Lost > 0, fmt.Sprint("lost ", v.Lost)}, {v.Rounds > 0, fmt.Sprint("rounds ", v.Rounds)}, {v.Rewinds > 0, fmt.Sprint("rewinds ", v.Rewinds)},
		{v.Limits.Total > 0, "at most " + v.Limits.Total.D().String()}, {v.Reserved != dag.Amount{}, "reserved $" + v.Reserved.USD.String()},
		{v.Reserve != dag.Amount{}, "next $" + v.Reserve.USD.String()},
	} {
		if x.is {
			line += ", " + x.text
		}
	}
	if x.s.Record(i).EndSeq > 0 {
		line += fmt.Sprintf(", ended by event %d", x.s.Record(i).EndSeq)
	}
	if v.Last != nil {
		line += strings.TrimRight(fmt.Sprintf("; %s %s %s", v.Last.Status, v.Last.Category, v.Last.Message), " ")
		for _, n := range v.Last.Notes {
			line += ", " + n.Type
		}
		for _, name := range slices.Sorted(maps.Keys(v.Values)) {
			line += fmt.Sprintf(", %s=%s", name, v.Values[name])
		}
	}
	x.printf("%s", line)
}

func (x *script) reload() {
	if s := x.restored(); s != nil {
		x.s = s
	}
}

// restored returns the state as its snapshot has it.
func (x *script) restored() *State {
	if x.s.graph == nil {
		return nil
	}
	raw, err := x.s.AppendSnapshot(nil)
	if err != nil {
		x.printf("%v", err)
		return nil
	}
	g, err := x.s.plainGraph()
	if err != nil {
		x.printf("%v", err)
		return nil
	}
	s, err := RestoreSnapshot(raw, g)
	if err != nil {
		x.printf("%v", err)
		return nil
	}
	if again, err := s.AppendSnapshot(nil); err != nil || !bytes.Equal(raw, again) {
		x.printf("the restored state differs: %v\n%s\n%s", err, raw, again)
	}
	return s
}

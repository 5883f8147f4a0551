package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
	"dagrun.dev/internal/printable"
)

// A printer prints plain progress lines: one when an attempt begins and one when it ends, one now and then while
// something takes long. On a terminal, where nodes begin and end faster than anybody reads, it sums them up.
type printer struct {
	mu      sync.Mutex
	out     *bufio.Writer // flushed by a timer, so that thousands of lines are a few writes
	due     bool          // the timer runs
	watched bool          // it prints to a terminal
	screen  *screen       // which shows how the run stands, where live
	live    bool
	display *display
	quiet   bool
	does    func(kind string, with json.RawMessage) string
	dir     string // of the run, as the user named it
	run     *run.Run
	jobs    int
	began   time.Time
	running []attempt // in order of start
	taken   map[string]statedir.Sample
	done    int // nodes that have ended
	nodes   int

	second  time.Time // of the lines counted
	lines   int       // printed in that second
	skipped int       // not printed since
	ticks   chan struct{}
	told    time.Time // when cost by label was printed last
}

// An attempt is one that this process has begun.
type attempt struct {
	node  string
	since time.Time
}

const (
	linesASecond = 20
	tickEvery    = 10 * time.Second // often enough to see that it lives
	moneyEvery   = time.Minute      // between lines on cost by label
	mostRunning  = 4                // nodes that a line on long attempts names
	lineWaits    = 50 * time.Millisecond
	lastWords    = 5 // lines of a failed node's output
)

func newPrinter(
	out *screen, live, quiet bool, dir string, does func(kind string, with json.RawMessage) string,
) *printer {
	return &printer{
		out: bufio.NewWriterSize(out, 32<<10), watched: isTerminal(out.out), screen: out, live: live,
		quiet: quiet, does: does, dir: dir,
		began: time.Now(), taken: map[string]statedir.Sample{},
	}
}

// isTerminal reports whether somebody may be reading what is printed as it comes.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// start begins the lines of a run that is about to be carried on; found is one of what there is on this machine. The
// looks are for the owner of the run's state to call.
func (p *printer) start(r *run.Run, jobs int, found string) (looks <-chan func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run, p.jobs, p.began, p.told = r, jobs, time.Now(), time.Now()
	p.look()
	if !p.quiet {
		fmt.Fprintf(p.out, "%s: %s, %d ended, %d at once; run %s\n%s",
			r.State().Run().Name, report.Count(p.nodes, "node"), p.done, jobs, r.ID(), found)
		p.flushSoon()
	}
	p.ticks = make(chan struct{})
	if p.live {
		_ = p.out.Flush()
		p.display = newDisplay(p.screen, r, p.dir)
		return p.display.looks
	}
	go p.tick(p.ticks)
	return nil
}

func (p *printer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ticks)
	p.sumUp()
	_ = p.out.Flush() // a reader that has gone away ends no run
	if p.display != nil {
		p.display.end()
	}
}

// flush has what was printed appear now.
func (p *printer) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Flush()
}

// flushSoon has what was printed appear.
func (p *printer) flushSoon() {
	if p.due {
		return
	}
	p.due = true
	time.AfterFunc(lineWaits, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.due = false
		_ = p.out.Flush()
	})
}

// look reads how many nodes have ended. It is called on the goroutine that owns the state, for each event.
func (p *printer) look() {
	st := p.run.State()
	p.done, p.nodes = 0, st.Graph().Len()
	for _, ended := range []machine.Status{machine.Completed, machine.Failed, machine.Skipped, machine.Cancelled} {
		p.done += st.Count(ended)
	}
}

// event prints what an event says. It is called on the goroutine that owns the state.
func (p *printer) event(e *machine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return // the run is being opened
	}
	if p.display != nil {
		p.display.note()
	}
	took := time.Duration(0) // unknown where a user or a probe says how a lost attempt ended
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		if b.Queued {
			return
		}
		p.running = append(p.running, attempt{b.Node, e.Time})
		p.started(b)
		return
	case *machine.FinishedBody:
		took = p.ended(b, e.Time)
	case *machine.RunSuspendedBody:
		for i := range p.running {
			p.running[i].since = p.running[i].since.Add(time.Duration(b.IdleMS) * time.Millisecond)
		}
	}
	if p.quiet {
		return
	}
	p.look()
	if b, ok := e.Body.(*machine.FinishedBody); ok && !p.mustPrint(b) && p.crowded() {
		p.skipped++ // without the text that line would not print
	} else if text, must := p.text(e, took); text != "" {
		p.line(text, must)
	}
	if b, ok := e.Body.(*machine.FinishedBody); ok {
		p.words(b)
		p.money()
	}
}

// started prints the line of an attempt that has begun: what it does.
func (p *printer) started(b *machine.StartedBody) {
	if p.quiet || p.live { // the picture names it
		return
	}
	if p.crowded() {
		p.skipped++
		return
	}
	v, ok := p.run.State().NodeByID(b.Node)
	if !ok || report.IsControl(v.Node.Kind) {
		return // done by this process, at once
	}
	parts := report.Parts{"started  " + b.Node}
	parts.Add(b.Attempt > 1, "attempt %d", b.Attempt)
	parts.Add(true, "%s", report.Reason(v.Node.Kind, p.does(v.Node.Kind, v.Node.With)))
	p.line(strings.Join(parts, "  "), false)
}

// words prints what an attempt warns of, and of a node that has failed for good the last lines that it printed, and
// where all of them are.
func (p *printer) words(b *machine.FinishedBody) {
	for _, text := range b.Warnings {
		p.line("warning  "+b.Node+": "+text, false)
	}
	if b.Status != dag.StatusFailed || !b.Final && !b.Stop {
		return
	}
	lines, at := report.LastWords(p.run, p.dir, b, lastWords)
	for _, line := range lines {
		fmt.Fprintf(p.out, "%9s  | %s\n", "", report.Plain(line))
	}
	if at != "" {
		fmt.Fprintf(p.out, "%9s  output: %s\n", "", report.Plain(at))
	}
}

// ended takes an attempt off those that run and returns how long it took.
func (p *printer) ended(b *machine.FinishedBody, at time.Time) time.Duration {
	i := slices.IndexFunc(p.running, func(a attempt) bool { return a.node == b.Node })
	if i < 0 {
		return 0
	}
	took := max(at.Sub(p.running[i].since), 1)
	p.running = slices.Delete(p.running, i, i+1)
	if v, ok := p.run.State().NodeByID(b.Node); ok && b.Status == dag.StatusCompleted && !v.Node.Role().Passive() {
		p.taken[v.Node.HistoryKey()] = statedir.Sample{Seconds: took.Seconds(), USD: b.CostUSD, Tokens: b.Usage.Total()}
	}
	return took
}

// text is the line of an event; empty for most. must says that it is printed however many come at once.
func (p *printer) text(e *machine.Event, took time.Duration) (text string, must bool) {
	f := fmt.Sprintf
	switch b := e.Body.(type) {
	case *machine.LLMCallStartedBody:
		if p.live {
			return "", false
		}
		return f("calling  %s  (~%d prompt tokens)", b.Node, b.PromptTokens), false
	case *machine.FinishedBody:
		return p.finished(b, took, e.Time), p.mustPrint(b)
	case *machine.RunSuspendedBody:
		return f("asleep   %s went by in which nothing was done; they count against no limit",
			(time.Duration(b.IdleMS) * time.Millisecond).Round(time.Second)), true
	case *machine.RunPausedBody:
		if b.Reason == machine.PauseCancel {
			return "cancel   " + b.Message, true
		}
		if b.Reason == machine.PauseFailure {
			return "ends     " + b.Message, true
		}
		return "paused   " + report.ReasonText(b.Reason, b.Node, b.Message), true
	case *machine.EscalationOpenedBody:
		return f("question %s: %s [%s]", b.ID, b.Message, report.Options(b)), true
	case *machine.EscalationAnsweredBody:
		return f("answer   %s: %s (by %s)", b.ID, report.Reason(b.Answer, b.Text), b.By), true
	case *machine.BreakerChangedBody:
		return "breaker  " + report.BreakerText(b, clock(e.Time)), true
	case *machine.BudgetWarnedBody:
		if b.Limit == "tokens" {
			return f("budget   warning: %s spent", report.Count(int(b.Tokens), "token")), true
		}
		return f("budget   warning: $%s spent", b.SpentUSD) + p.shares(), true
	case *machine.PlanSubmittedBody:
		return "plan     new one handed over by " + b.By + waitsFor(p.run.State().Holdup()), true
	case *machine.PlanAdoptedBody:
		return "plan     new one in force: " + adopted(b), true
	case *machine.CheckpointBody:
		return "saved    checkpoint " + b.ID, true
	case *machine.CompensationBody:
		switch {
		case !b.Done && b.Own:
			return "undoing  what " + b.Node + " left: " + b.Reason, true
		case !b.Done:
			return "undoing  " + b.Node + ": " + b.Reason, true
		case b.Then == dag.ThenContinue:
			return "warning  the run goes on without " + b.Node, true
		case b.Then != "":
			return "", false
		case b.Status == dag.StatusCompleted:
			if v, ok := p.run.State().NodeByID(b.Node); ok && v.Status != machine.Undone {
				return "undone   what " + b.Node + " left", true
			}
			return "undone   " + b.Node, true
		}
		return "failed   " + report.Reason("undo of "+b.Node, b.Reason), true
	case *machine.RewoundBody:
		if b.Reason == machine.ReasonChanged {
			return f("changed  %s: to run again, what they read has changed", report.Some(b.Nodes)), false
		}
		return f("rewound  to %s, %s to run again: %s", b.To, report.Count(len(b.Nodes), "node"), b.Reason), true
	}
	return "", false
}

// adopted says what a new plan changes.
func adopted(b *machine.PlanAdoptedBody) string {
	var parts report.Parts
	add := func(nodes []string, what string) {
		parts.Add(len(nodes) > 0, "%s %s", report.Count(len(nodes), "node"), what)
	}
	add(b.Invalidated, "to run again")
	add(b.Recheck, "to run again if what they read changes")
	add(b.Added, "new")
	add(b.Removed, "removed")
	return cmp.Or(strings.Join(parts, ", "), "no node runs again for it")
}

// waitsFor says what a new plan waits for.
func waitsFor(nodes []string) string {
	if len(nodes) == 0 {
		return ""
	}
	return "; waits for attempts to end that cost money or must not be repeated: " + report.Some(nodes)
}

// clock prints instants as of now: without the day when that is today.
func clock(now time.Time) func(time.Time) string {
	today := now.Local().Format(time.DateOnly) + " "
	return func(t time.Time) string { return strings.TrimPrefix(report.Instant(t), today) }
}

// ends are what became of attempts, in a word.
var ends = map[dag.Status]string{
	dag.StatusCompleted: "done", dag.StatusFailed: "failed", dag.StatusLost: "lost",
	dag.StatusRejected: "refused", dag.StatusSkipped: "skipped", dag.StatusCancelled: "stopped",
}

// mustPrint says that the end of an attempt is printed however many come at once.
func (p *printer) mustPrint(b *machine.FinishedBody) bool {
	if v, _ := p.run.State().NodeByID(b.Node); len(report.Shown(v.Node, b.Values)) > 0 {
		return true
	}
	return b.Status != dag.StatusCompleted && b.Status != dag.StatusSkipped
}

// finished is the line of an attempt's end.
func (p *printer) finished(b *machine.FinishedBody, took time.Duration, at time.Time) string {
	what := ends[b.Status]
	if b.Reused {
		what = "reused"
	}
	parts := report.Parts{fmt.Sprintf("%-8s %s", what, b.Node)}
	v, _ := p.run.State().NodeByID(b.Node)
	if v.Node != nil {
		parts[0] += report.Titled(v.Node.Short)
	}
	parts.Add(took > 0, "%s", elapsed(took))
	parts.Add(b.CostUSD > 0, "$%s", b.CostUSD)
	if b.CostKind == dag.CostAssumed {
		parts[len(parts)-1] += " assumed"
	}
	checks, shown := report.Validation(b), report.Shown(v.Node, b.Values)
	parts.Add(checks != "", "%s", strings.ToUpper(checks))
	if len(shown) > 0 {
		parts = append(parts, v.Node.Show.As+": "+report.ShownText(shown))
	}
	parts.Add(b.Category != "" || b.Message != "", "%s", report.Reason(b.Category, b.Message))
	line := strings.Join(parts, "  ")
	switch {
	case !b.RetryAt.IsZero():
		line += "; retry " + soon(b.RetryAt.Sub(at))
	case !b.WaitUntil.IsZero():
		line += "; waits until " + clock(at)(b.WaitUntil)
	}
	return line + p.standing(at)
}

// place opens a bracket with how many nodes have ended.
func (p *printer) place() string { return fmt.Sprintf("  [%d/%d", p.done, p.nodes) }

// standing is how far the run is, in brackets. The estimates look at every node, so they are left out of lines that
// come fast.
func (p *printer) standing(at time.Time) string {
	if p.lines >= 3 || p.live {
		return p.place() + "]"
	}
	parts := report.Parts{"  [" + report.Progress(p.run.State())}
	left, usd, _ := report.Forecast(p.run.State(), at, p.jobs) // nothing where too little is known
	spent := p.run.State().Spent().USD
	parts.Add(left > time.Second, "about %s left", elapsed(left))
	parts.Add(spent > 0 && usd <= spent, "$%s", spent)
	parts.Add(spent > 0 && usd > spent, "$%s of about $%s", spent, usd)
	return strings.Join(parts, ", ") + "]"
}

// line prints a line with the time since the start, unless many come at once and it may wait.
func (p *printer) line(text string, must bool) {
	if !must && p.crowded() {
		p.skipped++
		return
	}
	if now := time.Now(); now.Sub(p.second) >= time.Second {
		p.sumUp()
		p.second, p.lines = now, 0
	}
	p.lines++
	p.print(text)
}

// crowded says that this second has as many lines as anybody reads. A file and a pipe get them all.
func (p *printer) crowded() bool {
	return p.watched && p.lines >= linesASecond && time.Since(p.second) < time.Second
}

func (p *printer) print(text string) {
	fmt.Fprintf(p.out, "%9s  %s\n", elapsed(time.Since(p.began)), report.Plain(text))
	p.flushSoon()
}

// money prints now and then what was spent and will be, by label. It is called on the goroutine that owns the state:
// it looks at every node.
func (p *printer) money() {
	st, now := p.run.State(), time.Now()
	if p.live || now.Sub(p.told) < moneyEvery || st.Spent().USD == 0 {
		return
	}
	p.told = now
	if line := p.shares(); line != "" {
		p.line("cost     $"+st.Spent().USD.String()+line, true)
	}
}

// shares is what the parts of the run cost, behind a semicolon.
func (p *printer) shares() string {
	if line := report.SharesLine(report.Shares(p.run.State())); line != "" {
		return "; " + line
	}
	return ""
}

// sumUp says how many lines were not printed.
func (p *printer) sumUp() {
	if p.skipped > 0 {
		p.print(fmt.Sprintf("and %d more%s]", p.skipped, p.place()))
		p.skipped = 0
	}
}

// tick prints what is taking long.
func (p *printer) tick(stop <-chan struct{}) {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.still(time.Now())
			p.mu.Unlock()
		}
	}
}

func (p *printer) still(now time.Time) {
	var long report.Parts
	for _, a := range p.running {
		took := now.Sub(a.since)
		long.Add(took >= tickEvery, "%s %s", a.node, elapsed(took))
	}
	if p.quiet || len(long) == 0 {
		return
	}
	p.print("running  " + printable.Some(long, mostRunning) + p.place() + "]")
}

// warn prints a warning of a node. It is called from the attempts' goroutines.
func (p *printer) warn(node, msg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet {
		p.line(fmt.Sprintf("warn     %s: %s", node, msg), false)
	}
}

// soon prints how long something waits, if that is to be noticed.
func soon(d time.Duration) string {
	if d < 5*time.Millisecond {
		return "at once"
	}
	return "in " + elapsed(d)
}

// elapsed prints a time that is known, however short.
func elapsed(d time.Duration) string { return report.Duration(max(d, time.Millisecond).Seconds()) }

package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
)

// A printer prints plain progress lines: one when an attempt ends, one now and then while
// something takes long. When nodes end faster than anybody reads, it sums them up.
type printer struct {
	mu       sync.Mutex
	out      io.Writer
	quiet    bool
	run      *run.Run
	jobs     int
	began    time.Time
	progress report.Progress
	running  []string // nodes with attempts under way, in order of start
	taken    map[string]statedir.Sample

	second  time.Time // of the lines counted
	lines   int       // printed in that second
	skipped int       // not printed since
	ticks   chan struct{}
	told    time.Time // when cost by label was printed last
}

const (
	linesASecond = 20
	tickEvery    = 10 * time.Second // 000 §8.1: the display is renewed every 10 s
	moneyEvery   = time.Minute      // between lines on cost by label
)

func newPrinter(out io.Writer, quiet bool) *printer {
	return &printer{out: out, quiet: quiet, began: time.Now(), taken: map[string]statedir.Sample{}}
}

// start begins the lines of a run that is about to be carried on.
func (p *printer) start(r *run.Run, jobs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run, p.jobs, p.began, p.told = r, jobs, time.Now(), time.Now()
	p.progress.Start(r.State())
	if !p.quiet {
		fmt.Fprintf(p.out, "%s: %s, %d ended, %d at once; run %s\n",
			r.State().Run().Name, report.Count(p.progress.Total, "node"), p.progress.Ended, jobs, r.ID())
	}
	p.ticks = make(chan struct{})
	go p.tick(p.ticks)
}

func (p *printer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ticks)
	p.flush()
}

// samples returns what the attempts that completed took.
func (p *printer) samples() map[string]statedir.Sample { return p.taken }

func historyKey(st *machine.State, id string) string {
	if v, ok := st.NodeByID(id); ok {
		return v.Node.HistoryKey()
	}
	return id
}

// event prints what an event says. It is called on the goroutine that owns the state.
func (p *printer) event(e *machine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return // the run is being opened
	}
	st := p.run.State()
	took := "" // unknown where somebody says how a lost attempt ended
	if f, ok := e.Body.(*machine.FinishedBody); ok {
		d, measured := p.progress.Elapsed(f.Node, e.Time)
		p.leave(f.Node)
		if measured {
			took = elapsed(d.Seconds())
		}
		if f.Status == dag.StatusCompleted && measured {
			p.taken[historyKey(st, f.Node)] = statedir.Sample{Seconds: d.Seconds(), USD: f.CostUSD, Tokens: f.Usage.Total()}
		}
	}
	p.progress.Apply(e, st)
	if p.quiet {
		return
	}
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		p.running = append(p.running, b.Node)
	case *machine.LLMCallStartedBody:
		p.line(fmt.Sprintf("calling  %s  (~%d prompt tokens)", b.Node, b.PromptTokens), false)
	case *machine.FinishedBody:
		p.line(p.finished(b, took, e.Time), b.Status != dag.StatusCompleted && b.Status != dag.StatusSkipped)
		p.money()
	case *machine.RunPausedBody:
		if b.Reason == machine.PauseCancel {
			p.line("cancel   "+b.Message, true)
		} else {
			p.line("paused   "+report.ReasonText(b.Reason, b.Node, b.Message), true)
		}
	case *machine.EscalationOpenedBody:
		p.line(fmt.Sprintf("question %s: %s [%s]", b.ID, b.Message, strings.Join(b.Options, ", ")), true)
	case *machine.EscalationAnsweredBody:
		p.line("answer   "+b.ID+": "+b.Answer+" (by "+b.By+")", true)
	case *machine.BreakerChangedBody:
		p.line("breaker  "+report.BreakerText(b, clock(e.Time)), true)
	case *machine.BudgetWarnedBody:
		if b.Limit == "tokens" {
			p.line(fmt.Sprintf("budget   warning: %s spent", report.Count(int(b.Tokens), "token")), true)
		} else {
			p.line("budget   warning: $"+b.SpentUSD.String()+" spent", true)
		}
	case *machine.CheckpointBody:
		p.line("saved    checkpoint "+b.ID, true)
	case *machine.CompensationBody:
		p.line(undoLine(b), true)
	case *machine.RewoundBody:
		if b.Reason == machine.ReasonChanged {
			p.line("changed  "+strings.Join(b.Nodes, ", ")+": run again, what they read is not what it was", false)
			break
		}
		p.line(fmt.Sprintf("rewound  to %s, %s to run again: %s", b.To, report.Count(len(b.Nodes), "node"), b.Reason), true)
	}
}

// undoLine says that an undo action begins, and why, or how it ended.
func undoLine(b *machine.CompensationBody) string {
	switch {
	case !b.Done:
		return "undoes   " + b.Node + ": " + b.Reason
	case b.Status == dag.StatusCompleted:
		return "undone   " + b.Node
	}
	return strings.TrimSuffix("failed   undo of "+b.Node+": "+b.Reason, ": ")
}

// clock prints instants as of now: without the day when that is today.
func clock(now time.Time) func(time.Time) string {
	today := now.Local().Format(time.DateOnly) + " "
	return func(t time.Time) string { return strings.TrimPrefix(report.Instant(t), today) }
}

// finished is the line of an attempt's end.
func (p *printer) finished(b *machine.FinishedBody, took string, at time.Time) string {
	what := map[dag.Status]string{
		dag.StatusCompleted: "done", dag.StatusFailed: "failed", dag.StatusLost: "lost",
		dag.StatusRejected: "refused", dag.StatusSkipped: "skipped", dag.StatusCancelled: "stopped",
	}[b.Status]
	if b.Reused {
		what = "same"
	}
	line := fmt.Sprintf("%-8s %s", what, b.Node)
	if took != "" {
		line += "  " + took
	}
	if b.CostUSD > 0 {
		line += "  $" + b.CostUSD.String()
	}
	if b.CostKind == dag.CostAssumed {
		line += " assumed"
	}
	if b.Category != "" || b.Message != "" {
		line += "  " + strings.TrimPrefix(b.Category+": "+b.Message, ": ")
	}
	switch {
	case !b.RetryAt.IsZero():
		line += fmt.Sprintf("; again in %s", elapsed(b.RetryAt.Sub(at).Seconds()))
	case !b.WaitUntil.IsZero():
		line += "; waits until " + clock(at)(b.WaitUntil)
	}
	return line + p.standing(at)
}

// standing is how far the run is, in brackets. The estimates look at every node, so they are
// left out of lines that come fast.
func (p *printer) standing(at time.Time) string {
	s := fmt.Sprintf("  [%d/%d", p.progress.Ended, p.progress.Total)
	if p.lines < 3 {
		eta, usd, _ := p.progress.Forecast(p.run.State(), at, p.jobs) // nothing where too little is known
		if eta > time.Second {
			s += ", about " + elapsed(eta.Seconds()) + " left"
		}
		if p.progress.Cost > 0 {
			s += ", $" + p.progress.Cost.String()
			if usd > p.progress.Cost {
				s += " of about $" + usd.String()
			}
		}
	}
	return s + "]"
}

func (p *printer) leave(node string) {
	for i, n := range p.running {
		if n == node {
			p.running = append(p.running[:i], p.running[i+1:]...)
			return
		}
	}
}

// line prints a line with the time since the start, unless many come at once and it may wait.
func (p *printer) line(text string, must bool) {
	if now := time.Now(); now.Sub(p.second) >= time.Second {
		p.flush()
		p.second, p.lines = now, 0
	}
	if p.lines++; p.lines > linesASecond && !must {
		p.skipped++
		return
	}
	fmt.Fprintf(p.out, "%9s  %s\n", elapsed(time.Since(p.began).Seconds()), report.Plain(text))
}

// money prints now and then what was spent and will be, by label. It is called on the goroutine that
// owns the state: it looks at every node.
func (p *printer) money() {
	now := time.Now()
	if now.Sub(p.told) < moneyEvery || p.progress.Cost == 0 {
		return
	}
	p.told = now
	if line := report.SharesLine(p.progress.Shares(p.run.State())); line != "" {
		p.line("cost     $"+p.progress.Cost.String()+"; "+line, true)
	}
}

// flush sums up what was not printed.
func (p *printer) flush() {
	if p.skipped > 0 {
		fmt.Fprintf(p.out, "%9s  and %d more  [%d/%d]\n", elapsed(time.Since(p.began).Seconds()), p.skipped, p.progress.Ended, p.progress.Total)
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
	if p.quiet {
		return
	}
	var long []string
	for _, n := range p.running {
		if d, ok := p.progress.Elapsed(n, now); ok && d >= tickEvery {
			long = append(long, n+" "+elapsed(d.Seconds()))
		}
	}
	if len(long) == 0 {
		return
	}
	more := ""
	if len(long) > 4 {
		more = fmt.Sprintf(" and %d more", len(long)-4)
		long = long[:4]
	}
	fmt.Fprintf(p.out, "%9s  running  %s%s  [%d/%d]\n", elapsed(now.Sub(p.began).Seconds()), strings.Join(long, ", "), more, p.progress.Ended, p.progress.Total)
}

// log prints a line of a node's own log. It is called from the attempts' goroutines.
func (p *printer) log(node, level, msg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet && level != "INFO" {
		p.line(fmt.Sprintf("%-8s %s: %s", strings.ToLower(level), node, msg), level != "WARN")
	}
}

// beat is a sign of life of an attempt; plain lines do not show it.
func (p *printer) beat(string, string) {}

// elapsed prints a time that is known, however short.
func elapsed(sec float64) string { return report.Duration(max(sec, 0.001)) }

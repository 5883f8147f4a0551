package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
	"dagrun.dev/dag/runlog"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

// hostFlags say how a run is carried on.
type hostFlags struct {
	jobs      int
	grace     time.Duration
	quiet     bool
	progress  string
	noInput   bool
	allSynced bool
}

func (f *hostFlags) add(c *cobra.Command) {
	c.Flags().IntVarP(&f.jobs, "jobs", "j", 0,
		"attempts that run at once (default: the number of processors; at least 8 when nodes call models)")
	c.Flags().DurationVar(&f.grace, "stop-after", 0,
		"after an interrupt, stop what still runs after this time (default: let it end)")
	c.Flags().BoolVar(&f.allSynced, "all-synced", false, "sync every event before it is acted on (for measurements)")
	_ = c.Flags().MarkHidden("all-synced") // the flag exists
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only how the run ends, and what of it to look at")
	c.Flags().StringVar(&f.progress, "progress", progressAuto,
		"progress as plain lines, live: below them how the run stands, drawn in place, or auto: live on a terminal")
	c.Flags().BoolVar(&f.noInput, "no-input", false,
		"ask nothing at the terminal: pause where only an answer can carry the run on")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		if f.jobs < 0 || f.grace < 0 {
			return errors.New("--jobs and --stop-after must not be negative")
		}
		if !slices.Contains([]string{progressAuto, progressLive, progressPlain}, f.progress) {
			return fmt.Errorf("--progress is %q; expected auto, live or plain", f.progress)
		}
		if f.progress == progressLive && !newScreen(progressOut(c)).draws() {
			return errors.New("--progress live needs a terminal that can be drawn on (TERM is set, and not dumb): " +
				"leave it out, or use plain")
		}
		return nil
	}
}

const (
	progressAuto  = "auto"
	progressLive  = "live"
	progressPlain = "plain"
)

// newSession returns the session of a command on an existing run.
func newSession(c *cobra.Command, runs *runFlags, host *hostFlags) (*session, error) {
	dir, err := runs.existing()
	kinds := all.Registry()
	return &session{cmd: c, name: c.Name(), runs: runs, host: host, dir: dir, kinds: kinds}, err
}

// A session is one command's work on one run.
type session struct {
	cmd     *cobra.Command
	name    string
	runs    *runFlags
	host    *hostFlags
	kinds   *nodes.Registry
	specDir string
	plan    *dag.Plan // that the command has made of a specification; nil = none
	part    partFlags
	saved   *report.Plan // that is applied; nil = none
	origin  *origin      // to be written into the run; nil = as it has it
	dir     string

	warned  []string
	found   string         // what lookAhead has to tell once the run is announced
	paused  string         // why the run was paused before this command, on a line
	stays   bool           // it waits for answers
	nothing bool           // there is nothing to do
	stood   *report.Status // how the run stood at the end; nil: the command did not come so far
	opened  run.Options
	logs    *runlog.Logs
	printer *printer
	screen  *screen // which the printer writes to; nil before a run is opened
	release func()  // lets what the screen holds back be seen; nil: nothing is held back
	asker   *asker  // nil = nobody is asked
	crash   *crashPoint
}

// worthTelling is a tick that takes longer, or has done something: of others nothing is printed.
const worthTelling = 2 * time.Second

// options returns how the session opens its run.
func (s *session) options() run.Options {
	o := s.runs.options(s.dir, s.name)
	o.AllSynced = s.host.allSynced
	s.screen = newScreen(progressOut(s.cmd))
	if s.stays {
		s.release = s.screen.holdFor(worthTelling)
	}
	s.printer = newPrinter(s.screen, s.pictured(), s.host.quiet, s.dir, s.kinds.Does)
	s.logs = runlog.New(func(line string) { s.note("warning: " + line) })
	o.Weigh = s.weigh
	o.Plan = s.plan
	s.crash = readCrashPoint(os.Getenv("DAGRUN_CRASH_AT"))
	o.Project = func(e *machine.Event, st *machine.State) {
		s.crash.recording(e)
		s.logs.Project(e, st)
	}
	o.Observe = func(e *machine.Event, replayed bool) {
		if !replayed {
			s.printer.event(e)
			if s.asker != nil {
				s.asker.look()
			}
			s.crash.written(e)
		}
	}
	s.opened = o
	return o
}

// weigh has the order of starts follow what the nodes took in earlier runs. Without a history, or one
// that cannot be read, their estimates hold.
func (s *session) weigh(g *dag.Graph) *dag.Graph {
	state, err := s.runs.stateDir()
	if err != nil {
		return g
	}
	history, err := state.History(g.Plan.Name)
	if err != nil || len(history) == 0 {
		return g
	}
	return g.Reweigh(func(i int32) (float64, bool) {
		samples := history[g.Node(i).HistoryKey()]
		sum := 0.0
		for _, x := range samples {
			sum += x.Seconds
		}
		return sum / float64(max(1, len(samples))), len(samples) > 0
	})
}

// progressOut is where progress goes: beside the result when that is JSON.
func progressOut(c *cobra.Command) io.Writer {
	if asJSON(c) {
		return c.ErrOrStderr()
	}
	return c.OutOrStdout()
}

// pictured reports whether the screen shows how the run stands.
func (s *session) pictured() bool {
	return s.host.progress != progressPlain && !s.host.quiet && s.screen.draws()
}

// note prints a line beside the progress: on a terminal that shows both, above the picture.
func (s *session) note(line string) {
	out := s.cmd.ErrOrStderr()
	if s.screen != nil && s.pictured() && newScreen(out).draws() {
		out = s.screen
	}
	say(out, line)
}

// warn tells warnings, each once however often it is found: when the process that holds the run dies while it is asked,
// this one begins anew.
func (s *session) warn(texts ...string) {
	for _, text := range texts {
		if !slices.Contains(s.warned, text) {
			s.warned = append(s.warned, text)
			s.note("warning: " + text)
		}
	}
}

// evaluator evaluates the expressions of a plan.
func (s *session) evaluator(p *dag.Plan) (dag.Evaluator, error) {
	return compile.NewEvaluator(p, s.kinds)
}

// rest leaves a run as it is, but for the logs and the summary: the process that ended it may have died before it had
// written them.
func (s *session) rest(r *run.Run) {
	s.nothing = true
	s.logs.Start(r, s.opened)
	s.logs.Stop()
	if v := r.State().Run(); v.Status.Ended() && !runlog.HasSummary(s.opened, v.ID) {
		_, err := s.summarize(r, report.NewStatus(r, s.dir, time.Now()))
		s.warnOf(err)
	}
}

// summarize sums up a run, and keeps that beside the logs where it has ended.
func (s *session) summarize(r *run.Run, st *report.Status) (*report.Summary, error) {
	sum, err := report.NewSummary(r, s.opened, st)
	if err == nil && st.Status != machine.RunPause {
		s.warnOf(runlog.SaveSummary(s.opened, sum))
	}
	return sum, err
}

func (s *session) warnOf(err error) {
	if err != nil {
		s.warn("cannot write the summary: " + err.Error())
	}
}

// carryOn runs an open run until it ends or pauses, closes it and tells how it stands.
func (s *session) carryOn(r *run.Run) error {
	interrupt, stop := s.signals()
	defer stop()
	if state, err := s.runs.stateDir(); err == nil { // only the list of runs suffers
		_ = state.AddPlace(s.dir)
	}
	inbox, err := executor.OpenInbox(s.dir)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	closeInbox := sync.OnceFunc(inbox.Close)
	defer closeInbox()
	o, err := s.prepare(r)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	for _, id := range r.State().Run().SavedPlans {
		if err := s.usePlan(id, true); err != nil {
			s.warn("cannot note that this saved plan is applied; once the run is removed it could be applied again: " +
				err.Error())
		}
	}
	o.Interrupt, o.Requests = interrupt, inbox.Requests()
	s.logs.Start(r, s.opened)
	o.Looks = s.printer.start(r, o.Jobs, s.found+s.paused)
	forget := s.remember()
	if !s.host.noInput && !s.host.quiet && canAsk(s.cmd.InOrStdin(), s.screen.out) {
		in := s.cmd.InOrStdin().(*os.File)
		s.asker = newAsker(asker{
			in: in, screen: s.screen, draws: s.pictured(), run: r, put: inbox.Put, flush: s.printer.flush,
		})
		defer s.asker.stop()
		o.Stays = true
	}
	err = executor.Run(context.Background(), o)
	if s.asker != nil {
		s.asker.stop()
		s.asker = nil
	}
	closeInbox() // before the run is let go: who asks then opens it
	s.logs.Stop()
	s.printer.stop()
	for _, p := range all.Sweep() {
		s.warn("a node left " + p + " running; it was ended")
	}
	forget()
	if err != nil {
		r.Abandon()
		return err
	}
	return s.account(r)
}

// prepare says how a run is carried out, once everything that can be wrong before a start is known.
func (s *session) prepare(r *run.Run) (o executor.Options, err error) {
	if s.origin != nil {
		if err := s.origin.write(s.dir); err != nil {
			return o, err
		}
	}
	plan := r.Graph().Plan
	o = executor.Options{
		Run: r, Kinds: s.kinds, Jobs: s.host.jobs, SpecDir: s.specDir, StopGrace: s.host.grace, Secret: secret,
		Warn: s.printer.warn, OneByOne: s.crash.set(), Stays: s.stays,
	}
	if o.Jobs == 0 {
		o.Jobs = executor.DefaultJobs(plan)
	}
	o.Evaluator = s.evaluator
	if o.Eval, err = s.evaluator(plan); err != nil {
		return o, err
	}
	state, err := s.runs.stateDir()
	if err != nil {
		return o, err
	}
	o.Breakers, o.Cache = state, filepath.Join(state.Path(), "cache")
	if o.Binary, err = os.Executable(); err != nil {
		return o, err
	}
	return o, nil
}

// lookAhead looks for what the nodes need that run according to d, says what it found, and refuses with all that is
// missing.
func (s *session) lookAhead(d *reuse.Diff, specDir string) error {
	state, err := s.runs.stateDir()
	if err != nil {
		return err
	}
	m := nodes.Machine{SpecDir: specDir, Secret: secret}
	found := executor.Preflight(context.Background(), d, s.kinds, m, s.dir, state.Path())
	for _, w := range found.Warnings {
		s.warn(w)
	}
	if len(found.Problems) > 0 {
		return &missing{found}
	}
	if !s.host.quiet {
		s.found = "Checked: " + strings.Join(found.Found, ", ") + "\n"
	}
	return nil
}

// missing is that nothing was started because of what a plan needs.
type missing struct{ *nodes.Readiness }

func (m *missing) Error() string {
	return fmt.Sprintf("nothing was started, %s missing here:\n%s",
		report.Count(len(m.Problems), "thing"), strings.Join(m.Problems, "\n"))
}

// Unwrap is what is wrong with the disk, if that is all.
func (m *missing) Unwrap() error {
	if len(m.Problems) > 1 {
		return nil
	}
	return m.Disk
}

// account keeps what later plans learn from a run that was carried on, closes it and tells how it stands.
func (s *session) account(r *run.Run) error {
	var learned sync.WaitGroup // beside the last snapshot: of a large run, both take a while
	learned.Go(func() {
		if state, err := s.runs.stateDir(); err == nil { // only estimates suffer
			_ = state.AddHistory(r.Graph().Plan.Name, s.printer.taken)
		}
	})
	st := report.NewStatus(r, s.dir, time.Now())
	sum, err := s.summarize(r, st)
	err = errors.Join(err, r.Close())
	if learned.Wait(); err != nil {
		return err
	}
	return s.end(st, sum)
}

// end prints how the run stands and returns the exit status. A nil sum says that there was nothing to do.
func (s *session) end(st *report.Status, sum *report.Summary) error {
	s.stood = st
	status := exitDone
	if s.release != nil {
		t := s.plan.Ticks
		idle := t != nil && st.Status == machine.RunDone && st.State == t.Idle
		if idle {
			s.screen.forget()
		}
		if s.release(); idle {
			return nil
		}
	}
	switch st.Status {
	case machine.RunBroken:
		status = exitBad
	case machine.RunPause:
		status = pauseExit(st.Reason)
	}
	e := report.NewEnd(st, sum, status)
	if err := showAs(s.cmd, e, e.Form(s.host.quiet)); err != nil {
		return err
	}
	return exitWith(status)
}

// selected is the fact of what the command wants of the run.
func (s *session) selected() machine.PartSelectedBody {
	b := machine.PartSelectedBody{Part: s.part.Selection, Rerun: s.part.Rerun, By: s.name}
	if s.saved != nil {
		b.SavedPlan = s.saved.ID
	}
	return b
}

// usePlan remembers beyond the run that a saved plan is used: before the run records it, and once it has. A process
// that dies in between leaves a plan that may still be applied to the same directory.
func (s *session) usePlan(id string, recorded bool) error {
	if id == "" {
		return nil
	}
	state, err := s.runs.stateDir()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	earlier, err := state.UsePlan(id, statedir.UsedPlan{Dir: dir, Time: time.Now(), Recorded: recorded})
	if err != nil {
		return fmt.Errorf("cannot remember that the saved plan is applied, so it is not: %w", err)
	}
	if earlier != nil && !recorded {
		return usedPlan(earlier.Dir, earlier.Time)
	}
	return nil
}

func usedPlan(dir string, at time.Time) error {
	goOn := ""
	if run.Exists(dir) {
		goOn = "go on with that run (dagrun resume --output-dir " + dir + "), or "
	}
	return fmt.Errorf("the saved plan was applied already, to %s (%s), and a plan is applied once: %smake another plan "+
		"(dagrun plan SPEC -o FILE)", dir, report.Instant(at), goOn)
}

// findOrigin finds the specification's folder, which the user may have told.
func (s *session) findOrigin(told string) (err error) {
	s.specDir, s.origin, err = findOrigin(s.dir, told)
	return err
}

// resume records that the run goes on, and what becomes of the attempts that its last process left.
func (s *session) resume(r *run.Run, now time.Time, besides ...machine.Body) error {
	if v := r.State().Run(); v.Status == machine.RunPause {
		why := report.ReasonText(v.Pause.Reason, v.Pause.Node, v.Pause.Message)
		s.paused = "It was paused: " + report.Plain(why) + "\n"
	}
	if err := r.Beside(now, s.specDir); err != nil {
		return err
	}
	return r.Resume(now, s.name, executor.Adopt(r, s.kinds, s.evaluator, secret, now), besides...)
}

// processes is the file that names the processes of nodes while the run is carried on.
func (s *session) processes() string { return filepath.Join(s.dir, run.Dir, dag.OwnProcesses) }

// remember has the processes of nodes recorded there until forget is called.
func (s *session) remember() (forget func()) {
	forget, err := all.Remember(s.processes())
	if err != nil {
		s.warn("cannot record the processes of nodes; if dagrun is killed, the next start may not end all of them: " +
			err.Error())
		return func() {}
	}
	return forget
}

// endLeft ends what the process that carried the run on before has left running, if it was killed.
func (s *session) endLeft() {
	left, survivors, err := all.EndLeft(s.processes())
	for _, p := range left {
		s.note("the process before was killed and left " + p + " running; it was ended")
	}
	for _, p := range survivors {
		s.warn(p + " could not be ended")
	}
	if err != nil {
		s.warn("cannot find out what the process before left running: " + err.Error())
	}
}

// signals turns interrupts into values of a channel and tells the user what the next one does.
// A hang-up that was ignored when the program began (nohup) stays ignored.
func (s *session) signals() (<-chan time.Time, func()) {
	list := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	got := make(chan os.Signal, 2)
	signal.Notify(got, list...)
	// A reader of the progress that goes away ends no run: what is told from then on goes nowhere. For good,
	// because the summary comes after.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	out := make(chan time.Time, 2)
	done := make(chan struct{})
	go func() {
		var told time.Time
		var hard bool
		for {
			select {
			case <-got:
				now := time.Now()
				switch {
				case hard: // ends within seconds, whatever is asked
					s.note("interrupt: everything is being stopped already; the record is safe")
					continue
				case now.Sub(told) > executor.HardWithin:
					s.note(fmt.Sprintf("interrupt: nothing new starts; interrupt again within %.0f seconds to stop everything at once",
						executor.HardWithin.Seconds()))
					told = now
				default:
					hard = true
				}
				out <- now
			case <-done:
				return
			}
		}
	}()
	return out, func() { signal.Stop(got); close(done) }
}

// vendorKeys are the variables in which the vendors of models look for a key: a secret of such a name
// is also taken from there.
var vendorKeys = []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"}

// secret reads the value of a named secret from the environment.
func secret(name string) (string, error) {
	variable := "DAGRUN_SECRET_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
	v := os.Getenv(variable)
	if v == "" && slices.Contains(vendorKeys, name) {
		v = os.Getenv(name)
	}
	if v == "" {
		text := "the secret " + name + " is not set: set the environment variable " + variable
		return "", nodes.Permanent(nodes.Fail("config", text))
	}
	return v, nil
}

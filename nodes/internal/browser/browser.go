// Package browser shows a page in a headless browser and makes it stand still: started, bounded and ended
// so that no page can hang, fill or outlive the program. It takes no decisions about what a page shows.
package browser

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes/internal/proc"
)

// A Browser is one running browser. Tabs may be opened from any goroutine.
type Browser struct {
	Version string // product and version, e.g. "HeadlessChrome/156.0.8078.108"

	ctx     context.Context // of the driver; its end is the browser's
	stop    context.CancelFunc
	tree    *proc.Tree
	cmd     *exec.Cmd
	printed *tail // standard output and error
	folder  string
}

const (
	closeFor = 3 * time.Second // for leaving politely, then it is killed
	leftFor  = time.Second     // for its helpers
)

// A launch is what a browser is started with.
type launch struct {
	path    string // of the program
	set     *Settings
	origin  string        // all that it may reach
	most    time.Duration // until it answers
	scratch string        // where its folder goes
}

// start starts the program. It returns when the browser answers. A browser that ends by itself is started
// once more.
func (l *launch) start(ctx context.Context) (*Browser, error) {
	b, err := l.once(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errLate) {
		b, err = l.once(ctx)
	}
	return b, err
}

// errLate says that what was begun did not come to its end in time.
var errLate = errors.New("no answer from the browser")

func (l *launch) once(ctx context.Context) (*Browser, error) {
	folder, err := l.folder()
	if err != nil {
		return nil, err
	}
	b := &Browser{tree: proc.NewTree(), printed: &tail{}, folder: folder}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.WithoutCancel(ctx), b.options(l)...)
	var cancel context.CancelFunc
	silent := func(string, ...any) {}
	b.ctx, cancel = chromedp.NewContext(allocator, chromedp.WithErrorf(silent), chromedp.WithLogf(silent))
	b.stop = func() {
		cancel()
		stopAllocator() // waits for the end of the process
	}
	over, err := within(ctx, l.most, b.begin)
	if err == nil {
		b.tree.Root(chromedp.FromContext(b.ctx).Browser.Process().Pid)
		return b, nil
	}
	b.stop()
	<-over // it may have been about to start the program
	b.Close()
	return nil, l.failure(ctx, err, b.printed.String())
}

// within carries out f, which cannot be told to stop, and waits for it no longer than most: then the error is errLate.
// over is closed when f has ended all the same.
func within(ctx context.Context, most time.Duration, f func() error) (over <-chan struct{}, err error) {
	done := make(chan struct{})
	var got error
	go func() {
		defer close(done)
		got = f()
	}()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return done, got
	case <-timer.C:
		return done, errLate
	case <-ctx.Done():
		return done, context.Cause(ctx)
	}
}

// folder makes the folder of one browser: a fresh profile, so that the lock of a dead browser is never met, and a
// place for its temporary files.
func (l *launch) folder() (string, error) {
	folder, err := os.MkdirTemp(l.scratch, "browser-*")
	for _, dir := range []string{profileIn(folder), tmpIn(folder)} {
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	return folder, err
}

func profileIn(folder string) string { return filepath.Join(folder, "profile") }
func tmpIn(folder string) string     { return filepath.Join(folder, "tmp") }

// begin starts the program, waits until it answers, and closes the empty tab that it opens by itself: it is not needed,
// and has a process of its own.
func (b *Browser) begin() error {
	v, err := chromedp.CallBrowser(b.ctx, protocol.GetVersion, cdp.Empty{})
	if err != nil {
		return err
	}
	b.Version = v.Product
	open, err := chromedp.CallBrowser(b.ctx, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return err
	}
	for _, t := range open.TargetInfos {
		if t.Type != "page" {
			continue
		}
		closing := target.CloseTargetParams{TargetID: t.TargetID}
		if _, err := chromedp.CallBrowser(b.ctx, target.CloseTarget, closing); err != nil {
			return err
		}
	}
	return nil
}

// failure says why no browser was started, by what it printed.
func (l *launch) failure(ctx context.Context, err error, printed string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, errLate) {
		u := l.set.unavailable("stalled",
			fmt.Sprintf("%s did not answer within %v of its start (waits.launch)", l.path, l.most), printed)
		return errors.Join(u, errLate)
	}
	said := strings.TrimSpace(printed)
	if said == "" {
		said = err.Error()
	}
	lines := strings.Split(said, "\n")
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	message := fmt.Sprintf("%s does not start: %s", l.path, strings.Join(lines, "; "))
	if strings.Contains(said, "--no-sandbox") && os.Getuid() == 0 {
		message += " (as root it needs the flag --no-sandbox)"
	}
	return l.set.unavailable("config", message, printed)
}

// options returns what the driver starts the program with: a profile and an environment of its own, and a bound for
// memory.
func (b *Browser) options(l *launch) []chromedp.ExecAllocatorOption {
	env := proc.Environ(nil, map[string]string{
		"HOME": b.folder, "TMPDIR": tmpIn(b.folder), "TZ": "UTC", "LANG": "C.UTF-8", "DBUS_SESSION_BUS_ADDRESS": "disabled:",
	})
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(l.path), chromedp.NoInheritEnv, chromedp.Env(append(env, b.tree.Mark)...),
		chromedp.CombinedOutput(b.printed),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			detach(cmd)
			limits := proc.Limits{MemoryMB: l.set.MemoryMB}
			cmd.Path, cmd.Args = limits.Wrap(cmd.Path, cmd.Args)
			b.cmd = cmd
		}),
	}
	flags := l.set.flags(profileIn(b.folder), l.origin)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		options = append(options, chromedp.Flag(name, flags[name]))
	}
	return options
}

// Close ends the browser with everything it started and says what could not be ended. It may be
// called twice.
func (b *Browser) Close() (survivors []string) {
	if b.tree == nil {
		return nil
	}
	if c := chromedp.FromContext(b.ctx); c.Browser != nil && b.ctx.Err() == nil {
		polite, cancel := context.WithTimeout(b.ctx, closeFor)
		_ = chromedp.Cancel(polite) // it is killed below
		cancel()
	}
	b.stop()
	if b.cmd != nil && b.cmd.Process != nil {
		b.tree.Root(b.cmd.Process.Pid)
	}
	_, left := b.tree.End(false, leftFor)
	b.tree = nil
	_ = os.RemoveAll(b.folder) // what stays goes with the folder that it is in
	_, survivors = (&proc.Result{Survivors: left}).Leftovers("browser")
	return survivors
}

// A tail keeps the last of what a browser prints. Any goroutine.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const mostWords = 4 << 10 // bytes

// Write keeps p. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - mostWords; over > 0 {
		t.buf = slices.Delete(t.buf, 0, over)
	}
	return len(p), nil
}

// String returns what was kept, safe to print.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return printable.Text(string(t.buf))
}

// Package browser shows a page in a headless browser and makes it stand still: started, bounded and ended
// so that no page can hang, fill or outlive the program. It takes no decisions about what a page shows.
package browser

import (
	"context"
	"errors"
	"fmt"
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

	"dagrun.dev/nodes/internal/proc"
)

// A Browser is one running browser. Tabs may be opened from any goroutine.
type Browser struct {
	Version string // product and version, e.g. "HeadlessChrome/156.0.8078.108"

	ctx   context.Context // of the driver; its end is the browser's
	stop  context.CancelFunc
	tree  *proc.Tree
	cmd   *exec.Cmd
	words *tail
}

const (
	closeFor = 3 * time.Second // for leaving politely, then it is killed
	leftFor  = time.Second     // for its helpers
)

// start starts the program at path. It returns when the browser answers. A browser that ends by
// itself is started once more.
func start(ctx context.Context, path string, s *Settings, launch time.Duration, scratch string) (*Browser, error) {
	b, err := startOnce(ctx, path, s, launch, scratch)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errSilent) {
		b, err = startOnce(ctx, path, s, launch, scratch)
	}
	return b, err
}

// errSilent says that a browser did not answer in time.
var errSilent = errors.New("no answer from the browser")

func startOnce(ctx context.Context, path string, s *Settings, launch time.Duration, scratch string) (*Browser, error) {
	folder, err := os.MkdirTemp(scratch, "browser-*")
	if err != nil {
		return nil, err
	}
	b := &Browser{tree: proc.NewTree(), words: &tail{}}
	options, err := b.options(path, s, folder)
	if err != nil {
		return nil, err
	}
	allocator, stopAllocator := chromedp.NewExecAllocator(context.WithoutCancel(ctx), options...)
	var cancel context.CancelFunc
	b.ctx, cancel = chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}), chromedp.WithLogf(func(string, ...any) {}))
	b.stop = func() {
		cancel()
		stopAllocator() // waits for the end of the process
	}
	ready := make(chan error, 1)
	go func() { ready <- b.begin() }()
	timer := time.NewTimer(launch)
	defer timer.Stop()
	select {
	case err = <-ready:
	case <-timer.C:
		err = errSilent
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		b.tree.Root(chromedp.FromContext(b.ctx).Browser.Process().Pid)
		return b, nil
	}
	b.Close()
	return nil, b.startFailure(ctx, err, path, s, launch)
}

// begin starts the program, waits until it answers, and closes the empty tab that it opens by itself: nobody looks
// at it, and it has a process of its own.
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
		if _, err := chromedp.CallBrowser(b.ctx, target.CloseTarget, target.CloseTargetParams{TargetID: t.TargetID}); err != nil {
			return err
		}
	}
	return nil
}

func (b *Browser) startFailure(ctx context.Context, err error, path string, s *Settings, launch time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	words := b.words.String()
	if errors.Is(err, errSilent) {
		u := s.unavailable("stalled", fmt.Sprintf("%s did not answer within %v of its start (waits.launch)", path, launch), words)
		return errors.Join(u, errSilent)
	}
	said := strings.TrimSpace(words)
	if said == "" {
		said = err.Error()
	}
	lines := strings.Split(said, "\n")
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	message := fmt.Sprintf("%s does not start: %s", path, strings.Join(lines, "; "))
	if strings.Contains(said, "--no-sandbox") && os.Getuid() == 0 {
		message += " (as root it needs the flag --no-sandbox)"
	}
	return s.unavailable("config", message, words)
}

// options returns what the driver starts the program with: a fresh profile, so that the lock of a
// dead browser is never met, an environment of its own, and a bound for memory.
func (b *Browser) options(path string, s *Settings, folder string) ([]chromedp.ExecAllocatorOption, error) {
	profile, tmp := filepath.Join(folder, "profile"), filepath.Join(folder, "tmp")
	for _, dir := range []string{profile, tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	env := proc.Environ(nil, map[string]string{"HOME": folder, "TMPDIR": tmp, "TZ": "UTC", "LANG": "C.UTF-8", "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoInheritEnv, chromedp.Env(append(env, b.tree.Mark)...),
		chromedp.CombinedOutput(b.words),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			detach(cmd)
			limits := proc.Limits{MemoryBytes: s.MemoryMB << 20}
			cmd.Path, cmd.Args = limits.Wrap(cmd.Path, cmd.Args)
			b.cmd = cmd
		}),
	}
	flags := s.flags(profile)
	names := make([]string, 0, len(flags))
	for name := range flags {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		options = append(options, chromedp.Flag(name, flags[name]))
	}
	return options, nil
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
	_, left := b.tree.End(leftFor)
	b.tree = nil
	for _, p := range left {
		survivors = append(survivors, fmt.Sprintf("%d (%s)", p.Pid, p.Command))
	}
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
	return proc.Printable(string(t.buf))
}

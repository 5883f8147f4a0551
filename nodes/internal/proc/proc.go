// Package proc runs one child process under supervision and leaves none of its descendants
// behind. It does not know what the child is for, and it classifies nothing but the failure
// to start.
//
// A child gets a session of its own, so it has no terminal to scribble on and its process
// group can be signalled. What it prints goes straight into unnamed files: no pipe exists
// that a grandchild could hold open or that could fill up. On Linux this process is the reaper
// of orphans, so that daemons which left the group and the session are found and ended too;
// see Tree. Out of reach are only processes that are no descendants, such as those that the child
// asks a service manager or a container engine to start.
package proc

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"dagrun.dev/internal/awake"
	"dagrun.dev/nodes"
)

// A Spec says what to run. Argv and Dir are required.
type Spec struct {
	Argv []string
	Dir  string
	Env  []string // complete; see Environ
	// Stdin is read by the child from its current offset; nil is the null device.
	Stdin *os.File
	// Spool is the folder whose file system holds what the child prints; empty = os.TempDir().
	// No name appears in it.
	Spool string
	// Named is an existing folder in which what the child prints gets names instead, so that Reopen
	// can read it when this process has died; empty = it cannot be read again.
	Named string

	Grace   time.Duration // between the polite and the hard signal; 0 = 5 s
	Silence time.Duration // longest time without a new byte of output; 0 = no limit
	// Follow is called from the same goroutine with what the child has printed, piece by piece, once it has run for a
	// while: somebody may be looking. Not all comes that way: what a quick child prints, and what is beyond the
	// first 16 MB of a stream, is only in the Result.
	Follow func(errs bool, piece []byte)
	// MostOutput bounds what the child prints, in bytes, both streams together; 0 = no limit. It is ended as well when
	// the disk has no room left for a copy of what the children of this process have printed.
	MostOutput int64
	// Watch is called from one goroutine with each new piece of stdout, in order, and says
	// whether the child has given its result. While it says so, the child has ExitGrace to
	// end. The last call is over when Run returns. Nil costs nothing.
	Watch     func(piece []byte) (done bool)
	ExitGrace time.Duration // 0 = 10 s
	// Beat is called from the same goroutine when output grew, at most ten times a second.
	Beat   func()
	Limits Limits
}

// Limits bound the child and each of its descendants; zero fields do not. They are named as in specifications.
type Limits struct {
	MemoryMB   uint64 `json:"memoryMB"` // MiB of data segment and heap (RLIMIT_DATA)
	CPUSeconds uint64 `json:"cpuSeconds"`
	FileMB     uint64 `json:"fileMB"` // MiB of the largest file it may write, output included
	OpenFiles  uint64 `json:"openFiles"`
}

// A Result is how the child ended and what it printed. Close it.
type Result struct {
	Exit   int            // exit status; -1 when a signal ended it
	Signal syscall.Signal // the signal that ended it, or 0
	Cause  Cause          // why it was ended, if it was
	Stdout *Capture
	Stderr *Capture
	// Left names processes that the child left behind and that were ended.
	Left []Process
	// Survivors names processes that could not be ended.
	Survivors []Process

	counted int64 // in printed
}

// Cause says why a child was ended by its supervisor.
type Cause string

// The causes. Ended means that it ended by itself.
const (
	Ended     Cause = ""
	Cancelled Cause = "cancelled"    // ctx was cancelled
	TimedOut  Cause = "timeout"      // ctx passed its deadline
	Silent    Cause = "silent"       // no output for Spec.Silence
	Lingered  Cause = "lingered"     // its result was there, it did not end
	Limited   Cause = "output limit" // it printed more than may be kept
	Orphaned  Cause = "orphaned"     // its supervisor died; how it ended is not known
)

// A Process is one line of a process table.
type Process struct {
	Pid     int
	Command string // safe to print
}

const (
	defaultGrace     = 5 * time.Second
	defaultExitGrace = 10 * time.Second
)

// Run starts a child and returns when it and all its descendants are gone, or could not be
// ended. An error is a *StartError, or says that the operating system failed; how the child
// ended is in the Result. May be called from any goroutine, concurrently.
//
// Beyond what fork, exec and wait need, a command that prints nothing and leaves nothing behind costs these system
// calls on Linux (strace -c over 1,000 of them), and no file is opened for it:
//
//	dup3 ×3        in the child: standard input and two files for output (where none are given, os.StartProcess
//	               closes the three instead)
//	setsid, prctl, in the child: a session of its own, and the signal that ends it with this process;
//	getppid        whether the process died before that was set
//	gettid         fork must not run on the main thread; see there
//	clock_gettime  when the tree began, in the clock of /proc
//	waitid         the end, without reaping: until then the number of the group may be signalled
//	fstat ×2       how much it printed
//	pwrite64       its line in the record; see Remember
//	pread64        the main thread's list of children: whether anything was left behind
func Run(ctx context.Context, s *Spec) (*Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out, err := s.capture(stdoutName)
	if err != nil {
		return nil, err
	}
	errs, err := s.capture(stderrName)
	if err != nil {
		out.release(false)
		return nil, err
	}
	r := &Result{Stdout: out, Stderr: errs}
	tree, err := start(s, out.f, errs.f)
	if err != nil {
		r.Close()
		return nil, err
	}
	c := &child{tree: tree, grace: cmp.Or(s.Grace, defaultGrace)}
	over := watch(ctx, func() {
		c.end(causeOf(ctx))
		if errors.Is(context.Cause(ctx), nodes.ErrAtOnce) {
			c.kill()
		}
	}, s, c, r)
	status, err := c.wait()
	out.exited, errs.exited = out.grown(), errs.grown()
	over()
	if r.Left, r.Survivors = tree.End(c.patience()); len(r.Left) == 0 {
		out.size, errs.size = out.exited, errs.exited
	} else {
		out.size, errs.size = out.grown(), errs.grown()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	r.Cause, r.Exit = c.why(), status.ExitStatus()
	if status.Signaled() {
		r.Exit, r.Signal = -1, status.Signal()
	}
	return r, nil
}

func causeOf(ctx context.Context) Cause {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return TimedOut
	}
	return Cancelled
}

// Close gives the files back. The captures may not be used afterwards.
func (r *Result) Close() {
	printed.Add(-r.counted)
	reuse := len(r.Survivors) == 0
	r.Stdout.release(reuse)
	r.Stderr.release(reuse)
}

// A child is a process that has not been reaped, or has been. The lock orders signals before
// the reaping: a process group is never signalled after its number may have been given away.
type child struct {
	tree  *Tree
	grace time.Duration

	mu     sync.Mutex
	reaped bool
	cause  Cause
	asked  time.Time // when the one polite signal was sent
	timer  *awake.Timer
}

// end asks the child to stop, once, and kills it when the grace is over.
func (c *child) end(why Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped || !c.asked.IsZero() {
		return
	}
	c.asked, c.cause = time.Now(), why
	_ = syscall.Kill(-c.tree.root, syscall.SIGTERM)
	c.timer = awake.AfterFunc(c.grace, c.kill)
}

func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	c.tree.killAll()
	_ = syscall.Kill(-c.tree.root, syscall.SIGKILL)
}

// wait blocks until the child has ended, and reaps it.
func (c *child) wait() (status syscall.WaitStatus, err error) {
	err = awaitExit(c.tree.root)
	c.mu.Lock()
	c.reaped = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	for {
		_, err = syscall.Wait4(c.tree.root, &status, 0, nil)
		if err != syscall.EINTR {
			return status, os.NewSyscallError("wait4", err)
		}
	}
}

// patience says whether the group was asked to end, and how much of the grace is left.
func (c *child) patience() (asked bool, left time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked.IsZero() {
		return false, c.grace
	}
	return true, max(0, c.grace-time.Since(c.asked))
}

func (c *child) why() Cause {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

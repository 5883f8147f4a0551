package source

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// ChildCommand is the first argument that makes the program the child that
// evaluates a specification for its parent. The program then calls Child and nothing else.
const ChildCommand = "__evaluate"

// Limits of the child. Evaluating CUE has no budget of its own and cannot be cancelled: three
// lines of an untrusted specification may ask for any time and memory.
var childLimits = struct {
	Memory  uint64 // bytes of data
	Seconds uint64 // of processor time; the clock gets twice that
}{Memory: 1 << 30, Seconds: 30}

// A childRequest is what the parent writes to the child's stdin.
type childRequest struct {
	Path            string
	Options         Options
	Memory, Seconds uint64
}

// A childReply is what the child writes to its stdout.
type childReply struct {
	Loaded   Loaded
	Mistakes tree.Diagnostics
	Err      string // any other error
}

// Child evaluates the specification asked for on in, under limits, and writes the tree to out.
// It returns the exit status. It may write no file.
func Child(in io.Reader, out io.Writer, kinds *nodes.Registry) int {
	var req childRequest
	if err := gob.NewDecoder(in).Decode(&req); err != nil {
		return 2
	}
	if err := confine(req.Memory, req.Seconds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var reply childReply
	s, err := schema.For(kinds)
	if err == nil {
		reply.Loaded, err = Load(s, req.Path, req.Options)
	}
	if err != nil && !errors.As(err, &reply.Mistakes) {
		reply.Err = err.Error()
	}
	if err := gob.NewEncoder(out).Encode(reply); err != nil {
		return 2
	}
	return 0
}

// confine limits this process for good.
func confine(memory, seconds uint64) error {
	debug.SetMemoryLimit(int64(min(memory/10*8, math.MaxInt64)))
	for _, l := range []struct {
		what  int
		limit uint64
	}{{unix.RLIMIT_DATA, memory}, {unix.RLIMIT_CPU, seconds}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_CORE, 0}} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("source: cannot limit the evaluation: %w", err)
		}
	}
	return nil
}

// inChild loads a specification in a child process with limits.
func inChild(f found, o Options) (out Loaded, err error) {
	binary, err := os.Executable()
	if err != nil {
		return out, failure(f.name, reason(err))
	}
	o.Untrusted = false
	var in, reply, errs bytes.Buffer
	req := childRequest{Path: f.name, Options: o, Memory: childLimits.Memory, Seconds: childLimits.Seconds}
	if err := gob.NewEncoder(&in).Encode(req); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Duration(childLimits.Seconds)*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, ChildCommand)
	cmd.Env = []string{"GOTRACEBACK=none", "GOGC=100"} // and not what package heap decides
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &reply, &errs
	if err := cmd.Run(); err != nil {
		return out, failure(f.name, childDied(ctx, cmd, errs.String()))
	}
	var r childReply
	switch err := gob.NewDecoder(&reply).Decode(&r); {
	case err != nil:
		return out, failure(f.name, "the evaluation gave no answer: "+err.Error())
	case len(r.Mistakes) > 0:
		return r.Loaded, r.Mistakes
	case r.Err != "":
		return out, failure(f.name, r.Err)
	}
	return r.Loaded, nil
}

// childDied words why a child gave no answer.
func childDied(ctx context.Context, cmd *exec.Cmd, errs string) string {
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ctx.Err() != nil, strings.Contains(errs, "SIGXCPU"),
		status.Signaled() && (status.Signal() == unix.SIGXCPU || status.Signal() == unix.SIGKILL):
		return fmt.Sprintf("evaluating it takes more than %d s", childLimits.Seconds)
	case uint64(maxRSS(cmd)) > childLimits.Memory/2, // it dies in several ways at the limit
		strings.Contains(errs, "cannot allocate memory"), strings.Contains(errs, "out of memory"):
		return fmt.Sprintf("evaluating it takes more than %d MiB of memory", childLimits.Memory>>20)
	}
	line, _, _ := strings.Cut(errs, "\n")
	return fmt.Sprintf("evaluating it failed: %s: %s", cmd.ProcessState, line)
}

// maxRSS returns the most memory in bytes that an ended child had.
func maxRSS(cmd *exec.Cmd) int64 {
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}

// Limits of evaluating one's own specifications in CUE: a mistake such as a range with three digits too
// many is to end with a message. See childLimits for the specifications of others.
var ownLimits = struct {
	Memory uint64        // bytes of the heap
	Time   time.Duration // of the processor, for the whole process
}{Memory: 2 << 30, Time: time.Minute}

// watched loads a CUE specification and gives up when that takes more than ownLimits. The
// evaluator cannot be stopped: it goes on until the process ends, which is what a caller that
// gets the message is about to do.
func (r *reader) watched(f found, o Options) (out Loaded, err error) {
	done := make(chan struct{})
	var loaded Loaded
	var failed error
	go func() {
		loaded, failed = r.evaluated(f, o)
		close(done)
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for start := processorTime(); ; {
		select {
		case <-done:
			return loaded, failed
		case <-tick.C:
		}
		limit := ""
		switch {
		case processorTime()-start > ownLimits.Time:
			limit = fmt.Sprintf("%v of processor time", ownLimits.Time)
		case heap() > ownLimits.Memory:
			limit = fmt.Sprintf("%d MiB of memory", ownLimits.Memory>>20)
		default:
			continue
		}
		const hint = "write many nodes as foreach, or as JSON or YAML"
		return out, failure(f.name, fmt.Sprintf("evaluating it takes more than %s; %s", limit, hint))
	}
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is how many bytes of objects the heap holds.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

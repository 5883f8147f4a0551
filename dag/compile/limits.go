package compile

import (
	"bytes"
	"context"
	"encoding/gob"
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
	Options         LoadOptions
	Memory, Seconds uint64
}

// A childReply is what the child writes to its stdout.
type childReply struct {
	Value    *tree.Value
	Source   Source
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
	s, err := schemaFor(kinds)
	if err == nil {
		reply.Value, reply.Source, err = s.load(req.Path, req.Options)
	}
	if ds, ok := err.(tree.Diagnostics); ok {
		reply.Mistakes = ds
	} else if err != nil {
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
			return fmt.Errorf("compile: cannot limit the evaluation: %w", err)
		}
	}
	return nil
}

// loadInChild loads a specification in a child process with limits.
func (s *Schema) loadInChild(f found, src *Source, o LoadOptions) (*tree.Value, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, diagnose(f.name, reason(err))
	}
	o.Untrusted = false
	var in, out, errs bytes.Buffer
	req := childRequest{Path: f.name, Options: o, Memory: childLimits.Memory, Seconds: childLimits.Seconds}
	if err := gob.NewEncoder(&in).Encode(req); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Duration(childLimits.Seconds)*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, ChildCommand)
	cmd.Env = []string{"GOTRACEBACK=none"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, diagnose(f.name, childDied(ctx, cmd, errs.String()))
	}
	var reply childReply
	if err := gob.NewDecoder(&out).Decode(&reply); err != nil {
		return nil, diagnose(f.name, "the evaluation gave no answer: "+err.Error())
	}
	*src = reply.Source
	switch {
	case len(reply.Mistakes) > 0:
		return reply.Value, reply.Mistakes
	case reply.Err != "":
		return nil, diagnose(f.name, reply.Err)
	}
	return reply.Value, nil
}

// childDied words why a child gave no answer.
func childDied(ctx context.Context, cmd *exec.Cmd, errs string) string {
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case ctx.Err() != nil, status.Signaled() && (status.Signal() == unix.SIGXCPU || status.Signal() == unix.SIGKILL), strings.Contains(errs, "SIGXCPU"):
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

// loadWatched loads a CUE specification and gives up when that takes more than ownLimits. The
// evaluator cannot be stopped: it goes on until the process ends, which is what a caller that
// gets the message is about to do.
func (s *Schema) loadWatched(f found, src Source, o LoadOptions) (*tree.Value, Source, error) {
	type loaded struct {
		v   *tree.Value
		src Source
		err error
	}
	done := make(chan loaded, 1)
	asked := src
	go func() {
		v, err := s.loadCUESpec(f, &src, o)
		done <- loaded{v, src, err}
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for start := processorTime(); ; {
		select {
		case l := <-done:
			return l.v, l.src, l.err
		case <-tick.C:
		}
		if processorTime()-start > ownLimits.Time {
			return nil, asked, diagnose(f.name, fmt.Sprintf("evaluating it takes more than %v of processor time; write many nodes as foreach, or as JSON or YAML", ownLimits.Time))
		}
		if heap() > ownLimits.Memory {
			return nil, asked, diagnose(f.name, fmt.Sprintf("evaluating it takes more than %d MiB of memory; write many nodes as foreach, or as JSON or YAML", ownLimits.Memory>>20))
		}
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

package compile

import (
	"fmt"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"

	"dagrun.dev/internal/tree"
)

// Limits of evaluating one's own specifications in CUE: a slip such as a range with three digits too
// many is to end with a message. See childLimits for the specifications of others.
var ownLimits = struct {
	Memory uint64        // bytes of the heap
	Time   time.Duration // of the processor, for the whole process
}{Memory: 2 << 30, Time: time.Minute}

// loadWatched loads a CUE specification and gives up when that takes more than ownLimits. The
// evaluator cannot be stopped: it goes on until the process ends, which is what a caller that
// is told so is about to do.
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

package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is the memory that the collector leaves alone: what is alive of a pipeline of ten thousand nodes (12 MB),
// some garbage, stacks and the collector's own tables. A command that works on less hardly collects at all.
const smallHeap = 30 << 20

// boundMemory keeps a small heap small: with the collector's own rule it would grow to twice
// what is alive before it is looked at. The bound, which takes the place of that rule, follows what
// is alive after each collection. GOGC and GOMEMLIMIT, when set, are obeyed instead.
func boundMemory() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(smallHeap)
	follow()
}

// follow renews the bound after each collection, by the finalizer of an object that is garbage.
func follow() {
	sentinel := new([32]byte)
	runtime.SetFinalizer(sentinel, func(*[32]byte) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if live[0].Value.Kind() == metrics.KindUint64 {
			debug.SetMemoryLimit(heapBound(int64(live[0].Value.Uint64())))
		}
		follow()
	})
}

// heapBound is what the process may grow to when so many bytes of its heap are alive. What is alive must never come
// near it, or each collection would be followed by the next: stacks, gaps and the collector's own tables take half of
// a small bound. So there is room for about as much again and more as soon as more is alive than of ten thousand nodes;
// above 112 MiB it grows faster still, since there the collections, not the memory, are what a run of a hundred
// thousand nodes feels.
func heapBound(live int64) int64 {
	return max(smallHeap, min(live*4-24<<20, live*3/2+48<<20), live*5/2-64<<20)
}

// Package heap decides how much garbage the process leaves lying about. It needs nothing but the runtime: a program
// that imports it is bound before the packages are initialized that take most of its start, and does not collect
// meanwhile. The bound, which takes the place of the collector's own rule, follows what is alive after each collection;
// with that rule a small heap would grow to twice what is alive before it is looked at. GOGC and GOMEMLIMIT, when set,
// are obeyed instead.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is the memory that the collector leaves alone: what is alive of a pipeline of ten thousand nodes (14 MB),
// some garbage, stacks and the collector's own tables. A command that works on less hardly collects at all.
const smallHeap = 28 << 20

func init() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	bound()
}

func bound() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(smallHeap)
	follow()
}

// follow renews the bound after each collection, by the finalizer of an object that is garbage.
func follow() {
	sentinel := new([32]byte)
	runtime.SetFinalizer(sentinel, func(*[32]byte) {
		m := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"},
			{Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
			{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(m)
		of := func(i int) int64 { return int64(m[i].Value.Uint64()) }
		debug.SetMemoryLimit(heapBound(of(0), of(1)-of(2)-of(3)-of(4)))
		follow()
	})
}

// heapBound is what the process may grow to when so many bytes of its heap are alive, and so many are neither objects
// nor free: stacks, gaps and the collector's own tables. What is alive and these must never come near it, or each
// collection would be followed by the next. They take half of a small bound, and more than all of it where a large heap
// was before: what is left of the evaluation of a specification in CUE lies scattered. So there is room beside them for
// a quarter as much again as is alive and 4 MiB (with twice that, the peak of ten thousand commands is 5 MiB higher,
// and their processor time up to 2 % lower), and for more as soon as more is alive than of ten thousand nodes; above
// 112 MiB it grows faster still, since there the collections, not the memory, are what a run of a hundred thousand
// nodes feels.
func heapBound(live, beside int64) int64 {
	return max(smallHeap, live*5/4+4<<20+beside, min(live*4-72<<20, live*3/2+48<<20), live*5/2-64<<20)
}

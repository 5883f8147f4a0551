package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is the memory that the collector may use before it works harder than it must: what
// a pipeline of ten thousand nodes needs.
const smallHeap = 32 << 20

// boundMemory keeps a small heap small: with the collector's own rule it would grow to twice
// what is alive before it is looked at. A heap that is larger is left in peace: the bound follows
// what is alive after each collection. GOGC and GOMEMLIMIT, when set, are obeyed instead.
func boundMemory() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
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

// heapBound is what a heap may grow to of which so many bytes are alive: a little more where
// little is alive, by the half and more where the cost of collecting counts.
func heapBound(live int64) int64 {
	return max(smallHeap, live+10<<20, live*8/5-16<<20)
}

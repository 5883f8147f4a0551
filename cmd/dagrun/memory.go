package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is the memory that the collector may use before it works harder than it must. A
// pipeline of ten thousand nodes fits in, and the whole process into 64 MB.
const smallHeap = 36 << 20

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
			debug.SetMemoryLimit(max(smallHeap, int64(live[0].Value.Uint64())*8/5+8<<20))
		}
		follow()
	})
}

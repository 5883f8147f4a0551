package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// What is left of a large heap lies scattered, and its gaps count against the bound: there must be room beside them, or
// every collection is followed by the next one for as long as the run lasts.
func TestScatteredHeapIsNotCollectedAllTheTime(t *testing.T) {
	runtime.GC()
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	defer func() { debug.SetMemoryLimit(limit); debug.SetGCPercent(percent) }()
	bound()
	large := make([]*[1 << 10]byte, 100<<10)
	for i := range large {
		large[i] = new([1 << 10]byte)
	}
	for i := range large {
		if i%16 != 0 {
			large[i] = nil
		}
	}
	runtime.GC()
	runtime.GC() // the bound follows the first
	collections := func() uint64 {
		m := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
		metrics.Read(m)
		return m[0].Value.Uint64()
	}
	before := collections()
	for range 300 << 10 {
		garbage = new([1 << 10]byte)
	}
	if n := collections() - before; n > 100 {
		t.Errorf("%d collections for 300 MB of garbage beside 6 MB that are alive", n)
	}
	runtime.KeepAlive(large)
}

var garbage *[1 << 10]byte

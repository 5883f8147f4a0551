package eventlog

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// Appending events of silent nodes, written only (synced within 50 ms beside it), and with every group
// synced before the next.
func BenchmarkAppend(b *testing.B) {
	for _, synced := range []bool{false, true} {
		for _, group := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("allsynced=%v/group=%d", synced, group), func(b *testing.B) {
				l := benchLog(b, filepath.Join(b.TempDir(), strconv.Itoa(group)))
				events := make([]machine.Event, 0, group)
				b.ResetTimer()
				for n := 0; n < b.N; {
					for events = events[:0]; len(events) < group && n < b.N; n++ {
						events = append(events, machine.New(start0, &machine.StartedBody{Node: "layer/node", Generation: 1, Attempt: n + 1}))
					}
					if _, err := l.Append(events); err != nil {
						b.Fatal(err)
					}
					if synced {
						if err := l.Sync(); err != nil {
							b.Fatal(err)
						}
					} else {
						l.SyncSoon()
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

func benchLog(b *testing.B, dir string) *Log {
	b.Helper()
	fsys, err := disk.Open(filepath.Dir(dir))
	if err != nil {
		b.Fatal(err)
	}
	l, err := Create(fsys, logName, testRun, Options{}, story()[:1])
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close(); fsys.Close() })
	return l
}

// Verifying a log: every line is composed anew.
func BenchmarkRead(b *testing.B) {
	l := benchLog(b, filepath.Join(b.TempDir(), "x"))
	const events = 20000
	for i := range events {
		if _, err := l.Append([]machine.Event{machine.New(start0, &machine.StartedBody{Node: "layer/node", Generation: 1, Attempt: i + 1})}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(l.Head().Offset)
	b.ResetTimer()
	for range b.N {
		if _, _, err := Read(l.fsys, logName, Head{}, func(*machine.Event, *Envelope) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(events*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

package eventlog

import (
	"bytes"
	"errors"
	"testing"

	"dagrun.dev/dag/machine"
)

// B-4: whatever stands in a log and in its mark, it is opened with a beginning of whole lines as they were
// written, or refused with a line and a way out. What was opened can be appended to and reads back.
func FuzzOpen(f *testing.F) {
	full := newLog(f, story())
	whole, mark := content(f, full, logName), content(f, full, MarkName(logName))
	f.Add(whole, mark)
	f.Add(whole, []byte("{}"))
	f.Add(whole[:len(whole)/2], []byte(nil))
	f.Add(append(bytes.Clone(whole), "{\"event_hash\":"...), []byte(nil))
	f.Add(bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")), mark)
	f.Add(bytes.Replace(whole, []byte(`"sequence":2`), []byte(`"sequence":99999999999999999999`), 1), mark)
	f.Fuzz(func(t *testing.T, log, mark []byte) {
		m := withLog(t, log, mark)
		l, tail, err := Open(m.FS(), logName, Head{}, Options{}, func(*machine.Event, *Envelope) error { return nil })
		var damaged *Damaged
		var newer *Newer
		switch {
		case errors.As(err, &damaged):
			if damaged.Why == "" || damaged.WayOut == "" {
				t.Fatalf("says too little: %+v", damaged)
			}
			return
		case errors.As(err, &newer):
			return
		case err != nil:
			t.Fatalf("an error of neither kind: %v", err)
		}
		if kept := content(t, m, logName); !bytes.HasPrefix(log, kept) || int64(len(kept))+tail.Bytes != int64(len(log)) || !bytes.HasSuffix(kept, []byte("\n")) {
			t.Fatalf("kept %d bytes, tail %+v", len(kept), tail)
		}
		if _, err := l.Append([]machine.Event{machine.New(start0, &machine.RunResumedBody{})}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if types, _, err := readAll(m); err != nil || types[len(types)-1] != machine.RunResumed {
			t.Fatalf("%v after an append: %v", types, err)
		}
	})
}

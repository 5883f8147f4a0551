package agent

import (
	"testing"

	"dagrun.dev/nodes/agent/internal/transcript"
)

// The last word is found however the output is cut into pieces, and a new turn takes it back.
func TestEndWatch(t *testing.T) {
	tests := []struct {
		in   string
		done bool
	}{
		{`{"type":"assistant"}` + "\n" + `{"x":1,"type":"result"}` + "\n", true},
		{`{"type":"result"}`, true},
		{`[{"type":"system"},{"type":"result"}]` + "\n", true},
		{`{"type":"result"}` + "\n" + `{"type":"user"}` + "\n", false},
		{`{"type":"result"}` + "\nlog line\n", true},
		{`{"type":"user","message":{"content":[{"type":"result"}]}}` + "\n", false},
		{`text about {"type":"result"}` + "\n", false},
		{`{"type":"result"`, false},
	}
	for _, tt := range tests {
		for size := 1; size <= len(tt.in); size += 7 {
			w := &endWatch{ended: transcript.Claude.Last}
			done := false
			for rest := tt.in; rest != ""; {
				n := min(size, len(rest))
				done = w.piece([]byte(rest[:n]))
				rest = rest[n:]
			}
			if done != tt.done {
				t.Errorf("%q in pieces of %d: done %v", tt.in, size, done)
			}
		}
	}
}

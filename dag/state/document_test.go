package state

import "testing"

// A document that says of no run what it has come to is not written.
func TestEncodeWantsARun(t *testing.T) {
	if b, err := new(Document).Encode(); err == nil {
		t.Errorf("wrote %s", b)
	}
}

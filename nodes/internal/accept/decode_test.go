package accept

import (
	"encoding/json"
	"runtime"
	"testing"
)

// Decoders are used again: what was left over, or wrong, in one settings must not meet the next.
func TestDecodeAgain(t *testing.T) {
	type settings struct {
		Argv []string `json:"argv"`
		Run  string   `json:"run"`
	}
	for range 3 {
		for _, tt := range []struct {
			with string
			ok   bool
			run  string
		}{
			{`{"run":"a"}`, true, "a"}, {`{"run":"b"} {"run":"left over"}`, true, "b"}, {``, true, ""},
			{`{"run":1}`, false, ""}, {`{"runs":"c"}`, false, ""}, {`{"run":`, false, ""}, {` {"run":"d"} `, true, "d"},
			{`{"argv":["x"]}`, true, ""}, {`}`, false, ""}, {`{"argv":["y"],"run":"e"}`, true, "e"},
		} {
			var s settings
			err := Decode(json.RawMessage(tt.with), &s)
			if (err == nil) != tt.ok || s.Run != tt.run {
				t.Errorf("%s: %+v, %v", tt.with, s, err)
			}
		}
	}
}

// The settings of ten thousand nodes are read one after the other: a decoder and its buffer for each were 9 MB.
func TestDecodeMemory(t *testing.T) {
	const times = 1000
	var s struct {
		Argv []string `json:"argv"`
	}
	with := json.RawMessage(`{"argv":["/bin/true"]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		if err := Decode(with, &s); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 600 { // 19; more where the detector of races drops decoders
		t.Errorf("%d bytes for each", each)
	}
}

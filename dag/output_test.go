package dag

import (
	"encoding/json"
	"strings"
	"testing"
)

// W-6: what a double cannot hold is kept as text and read by its declared type, in lists and maps too.
func TestKeptValue(t *testing.T) {
	for _, tt := range []struct{ typ, value, kept string }{
		{"int", `9007199254740993`, `"9007199254740993"`},
		{"int?", `-9223372036854775808`, `"-9223372036854775808"`},
		{"int", `9007199254740992`, `9007199254740992`},
		{"list", `[1,9007199254740993]`, `"[1,9007199254740993]"`},
		{"map", `{"a":{"b":9007199254740993,"c":"\u00e9"}}`, `"{\"a\":{\"b\":9007199254740993,\"c\":\"\\u00e9\"}}"`},
		{"map", `{"a":1}`, `{"a":1}`},
		{"string", `"9007199254740993"`, `"9007199254740993"`},
		{"string", `"[1]"`, `"[1]"`},
		{"number", `0.1`, `0.1`},
	} {
		kept, err := KeptValue(json.RawMessage(tt.value))
		if err != nil {
			t.Errorf("%s: %v", tt.value, err)
		}
		if string(kept) != tt.kept {
			t.Errorf("%s is kept as %s, want %s", tt.value, kept, tt.kept)
		}
		if got := ReadValue(kept, tt.typ); string(got) != tt.value {
			t.Errorf("%s is read as %s", tt.value, got)
		}
		if _, err := AppendCanonical(nil, kept); err != nil {
			t.Errorf("%s cannot be kept: %v", kept, err)
		}
	}
}

// What is kept is in one form, that of the log; what cannot be kept as it is says so.
func TestKeptValueIsExactOrRefused(t *testing.T) {
	for value, want := range map[string]string{
		`1.0`: `1`, `1e18`: `1000000000000000000`, `-0.0`: `0`, `[1.50, {"b":1,"a":"\u00e9"}]`: `[1.5,{"a":"é","b":1}]`,
		`"\ud83d\ude00"`: `"😀"`, `"\\ud800"`: `"\\ud800"`, `"\\\\u"`: `"\\\\u"`,
		`1e400`: "", `[1,{"a":-1e400}]`: "", `[9007199254740993,1e400]`: "", `9223372036854775808`: "",
		`{"a":123456789012345678901234567890}`: "", `"\ud800"`: "", `{"a\udc00":1}`: "", `"\ude00\ud83d"`: "", `"\ud83dx"`: "",
		"\"\xff\"": "", `NaN`: "", `1e-400`: "", `[-2.5e-999]`: "", `0.0e-400`: `0`, `5e-324`: `5e-324`,
	} {
		kept, err := KeptValue(json.RawMessage(value))
		if string(kept) != want && err == nil || (err != nil) != (want == "") {
			t.Errorf("%s is kept as %s (%v), want %q", value, kept, err, want)
		}
	}
}

// What is kept stands deep inside events and snapshots, and must be read from there again.
func TestKeptValueIsNotNestedDeeply(t *testing.T) {
	nested := func(depth int, open, inner, closing string) json.RawMessage {
		return json.RawMessage(strings.Repeat(open, depth) + inner + strings.Repeat(closing, depth))
	}
	for _, tt := range []struct{ open, inner, closing string }{
		{"[", "", "]"}, {`{"a":`, "1", "}"}, {`[1,"[[\"",`, "9007199254740993", "]"},
	} {
		kept, err := KeptValue(nested(maxDepth, tt.open, tt.inner, tt.closing))
		if err != nil {
			t.Errorf("%d levels of %s: %v", maxDepth, tt.open, err)
		} else if _, err := AppendCanonical(nil, nested(maxDepth, "[", string(kept), "]")); err != nil {
			t.Errorf("%d levels of %s cannot be read again: %v", maxDepth, tt.open, err)
		}
		for _, depth := range []int{maxDepth + 1, 9_990, 10_000, 1_000_000} { // jsontext reads no more than 10,000
			if kept, err := KeptValue(nested(depth, tt.open, tt.inner, tt.closing)); err == nil {
				t.Errorf("%d levels of %s are kept: %.20s", depth, tt.open, kept)
			}
		}
	}
}

package dag

import (
	"encoding/json"
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
		kept := KeptValue(json.RawMessage(tt.value))
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

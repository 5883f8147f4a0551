package tree

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestParseJSONTraps: what encoding/json does in silence is exact here, or an error
// (case d-libs/20).
func TestParseJSONTraps(t *testing.T) {
	want := []string{
		`1:8: unexpected text after the end of the document`,
		`total_cost_usd: duplicate key; first set at f.json:1:2`,
		`{"IS_ERROR":false,"is_error":true}`,
		`{"Result":"x"}`,
		`{"result":null}`,
		`{"input_tokens":9007199254740993}`,
		`invalid surrogate pair`,
		`{"a":1}`,
		`{"total_cost_usd":"0.1"}`,
		`1e400 is out of the range of numbers`,
		`{"num_turns":3}`,
		`nested deeper than 64 levels`,
		`{"usage":[]}`,
	}
	f, err := os.Open("testdata/cases/20-json-decoder-traps/values.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	n := 0
	for ; in.Scan(); n++ {
		var c struct{ Input, Right string }
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if n >= len(want) {
			t.Fatalf("no expectation for line %d", n+1)
		}
		v, err := ParseJSON("f.json", []byte(c.Input), Defaults)
		got := fmt.Sprint(err)
		if err == nil {
			got = string(v.AppendJSON(nil))
		}
		if err == nil && got != want[n] || err != nil && !strings.Contains(got, want[n]) {
			t.Errorf("%.60s (right: %s): got %s, want %s", c.Input, c.Right, got, want[n])
		}
	}
	if n != len(want) {
		t.Errorf("%d inputs, %d expectations", n, len(want))
	}
}

func TestParseJSONPlaces(t *testing.T) {
	text := "\ufeff{\n  \"é\": [1, \"ü\", {\"a\": -0.5e1}],\r\n\t\"b\": true\n}"
	v, err := ParseJSON("f.json", []byte(text), Defaults)
	if err != nil {
		t.Fatal(err)
	}
	item := v.Get("é").Items
	for got, want := range map[Pos]string{
		v.Pos: "f.json:1:1", v.Fields[0].Pos: "f.json:2:3", item[0].Pos: "f.json:2:9",
		item[2].Fields[0].Pos: "f.json:2:18", v.Get("b").Pos: "f.json:3:7",
	} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if x := item[2].Get("a"); x.Kind != Int || x.Int != -5 {
		t.Errorf("-0.5e1 is %+v", x)
	}
}

func TestParseJSONMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "f.json:1:1: the document is empty",
		"{":                             "f.json:1:2: the document ends before it is complete",
		`{"a" 1}`:                       "f.json:1:6: invalid character '1' after object name (expecting ':')",
		`{"a": }`:                       "f.json:1:7: invalid character '}' at start of value",
		`{"a": [1 2]}`:                  "f.json:1:10: invalid character '2' after array element (expecting ',' or ']')",
		`[1,]`:                          "f.json:1:3: invalid character ',' at start of value",
		`{"a": 01}`:                     "f.json:1:8: invalid character '1' after object value (expecting ',' or '}')",
		`[-]`:                           "f.json:1:3: invalid character ']' in number (expecting digit)",
		`[1.]`:                          "f.json:1:4: invalid character ']' in number (expecting digit)",
		`["a`:                           "f.json:1:4: the document ends before it is complete",
		`["\x"]`:                        `f.json:1:3: invalid escape sequence ` + "`\\x`" + ` in string`,
		`["\u00g0"]`:                    `f.json:1:3: invalid escape sequence ` + "`\\u00g0`" + ` in string`,
		"[\"a\nb\"]":                    `f.json:1:4: invalid character '\n' in string (expecting non-control character)`,
		"[\"\xff\"]":                    "f.json:1:3: invalid UTF-8",
		`[9223372036854775808]`:         "f.json:1:2: [0]: 9223372036854775808 does not fit 64 bits",
		`{"a": {"b": 1, "b": 2}}`:       "f.json:1:16: a.b: duplicate key; first set at f.json:1:8",
		`{"a": [0, {"b c":1,"b c":2}]}`: `f.json:1:20: a[1]."b c": duplicate key; first set at f.json:1:12`,
		"\xff\xfe{\x00}\x00":            "f.json: the file is in UTF-16; save it as UTF-8",
		`nul`:                           "f.json:1:4: the document ends before it is complete",
	} {
		if _, err := ParseJSON("f.json", []byte(text), Defaults); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	if _, err := ParseJSON("f.json", []byte("[1,2,3]"), Limits{Values: 3}); err == nil || !strings.Contains(err.Error(), "more than 3 values") {
		t.Error(err)
	}
}

// A number that would be nothing, or infinite, is no other number instead.
func TestParseJSONOutOfRange(t *testing.T) {
	for text, want := range map[string]string{
		"[1e400]": "1e400 is out of the range of numbers", "[-1e-400]": "-1e-400 is out of the range of numbers",
		"[0e-400]": "", "[5e-324]": "",
	} {
		_, err := ParseJSON("f.json", []byte(text), Defaults)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestParseText(t *testing.T) {
	pos := Pos{File: FileOf("--set a.b")}
	for text, want := range map[string]string{
		"3": "3", "true": "true", "1.5": "1.5", `"3"`: `"3"`, "[1,2]": "[1,2]", `{"a":1}`: `{"a":1}`,
		"claude": `"claude"`, "": `""`, "01": `"01"`, "a b": `"a b"`, "null": "null", "2026-01-01": `"2026-01-01"`, "[x": `"[x"`,
	} {
		v := ParseText(text, pos)
		if got := string(v.AppendJSON(nil)); got != want || v.Pos != pos {
			t.Errorf("%q: got %s at %s", text, got, v.Pos)
		}
	}
}

// A name in a path cannot be taken for steps of it, and nothing in it moves or hides on a terminal.
func TestJoin(t *testing.T) {
	for name, want := range map[string]string{
		"a": "n.a", "a/b": "n.a/b", "é": "n.é", "": `n.""`, "a.b": `n."a.b"`, "a b": `n."a b"`, "a\tb": `n."a\tb"`,
		"a\x1b[2J": `n."a\x1b[2J"`, "a\u202eb": `n."a\u202eb"`, "a\u200bb": `n."a\u200bb"`, "a\u00a0b": `n."a\u00a0b"`,
	} {
		if got := Join("n", name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

func TestCloneAndSet(t *testing.T) {
	v := ParseText(`{"a":[1,{"b":null}],"c":"x"}`, Pos{})
	c := v.Clone()
	c.Get("a").Items[1].Set("b", Pos{}, ParseText("2", Pos{}))
	c.Set("d", Pos{Line: 7}, ParseText("3", Pos{}))
	if got := string(v.AppendJSON(nil)); got != `{"a":[1,{"b":null}],"c":"x"}` || Equal(v, c) {
		t.Errorf("the original changed: %s", got)
	}
	if got := string(c.AppendJSON(nil)); got != `{"a":[1,{"b":2}],"c":"x","d":3}` {
		t.Errorf("the copy is %s", got)
	}
}

// FuzzParseJSON: whatever is accepted is JSON and survives a round trip; nothing panics.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x\u00e9\n",null,true]}`, `[[[]]]`, `{"a":1,"a":2}`, "\ufeff1", `"\ud83d\ude00"`, `1e400`, `-0`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ParseJSON("f", data, Limits{Depth: 64, Values: 10_000})
		if err != nil {
			return
		}
		if !json.Valid(bytes.TrimPrefix(data, []byte("\ufeff"))) {
			t.Fatalf("%q is no JSON", data)
		}
		again, err := ParseJSON("f", v.AppendJSON(nil), Limits{})
		if err != nil || !Equal(v, again) {
			t.Fatalf("%q became %s (%v)", data, v.AppendJSON(nil), err)
		}
	})
}

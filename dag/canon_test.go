package dag

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"
)

// FuzzCanonical holds the production encoder against an independent RFC 8785 implementation.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`{"b":1,"a":[1.5,-0,1e21,1E-7,0.000001,123456789012345678e-5],"\u20ac":"\ud83d\ude02\u0001\n<>&\u2028","":{}}`,
		`{"\uffff":1,"\ud83d\ude00":2,"\ue000":3,"z":{"y":[],"x":null}}`,
		`[true,false,null,"\/\b\f\r\t\"\\",333333333.33333329,4.50,2e-3,1e-27]`,
		` { "a" : { "c" : 1 , "b" : [ ] } } `, `"x"`, `-1`, `1e308`, `{"a":{"a":{"a":1}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := AppendCanonical(nil, []byte(s))
		if err != nil {
			return
		}
		again, err := AppendCanonical(nil, got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("canonical form of %q is not stable: %q, %v", got, again, err)
		}
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatalf("accepted %q, encoding/json says %v", s, err)
		}
		switch v.(type) {
		case map[string]any, []any: // the referee reads nothing else
		default:
			return
		}
		want, err := jcs.Transform([]byte(s))
		if err != nil {
			if strings.Contains(s, `\u`) {
				return // the referee is stricter about noncharacters and lone surrogates
			}
			t.Fatalf("accepted %q, which the referee refuses: %v", s, err)
		}
		if string(got) != string(want) {
			t.Fatalf("%q\n got %s\nwant %s", s, got, want)
		}
	})
}

func TestCanonicalRefuses(t *testing.T) {
	for _, s := range []string{
		``, `{`, `{"a":1,"a":2}`, `{"b":1,"a":1,"b":2}`, `01`, `+1`, `1.`, `.5`, `1e`, `NaN`, `1e999`, `9007199254740993`,
		`"\ud800"`, `"\x"`, "\"\x01\"", "\"\xff\"", `[1,]`, `{"a":1,}`, `{} x`, `tru`, strings.Repeat("[", 5000),
	} {
		if got, err := AppendCanonical(nil, []byte(s)); err == nil {
			t.Errorf("%.40q: accepted as %q", s, got)
		}
	}
}

type sample struct {
	Z    string                     `json:"z"`
	A    int64                      `json:"a,omitempty"`
	B    *bool                      `json:"b,omitempty"`
	D    Duration                   `json:"d,omitzero"`
	F    float64                    `json:"f,omitempty"`
	In   Retry                      `json:"in,omitzero"`
	M    map[string]json.RawMessage `json:"m,omitempty"`
	T    time.Time                  `json:"t,omitzero"`
	U    USD                        `json:"u,omitzero"`
	N    uint32                     `json:"n,omitempty"`
	Raw  json.RawMessage            `json:"raw,omitempty"`
	List []Param                    `json:"list,omitempty"`
	Skip string                     `json:"-"`
}

func TestJSONRoundTrip(t *testing.T) {
	yes := true
	in := sample{Z: "ü\x00", A: -5, B: &yes, D: Duration(90 * time.Second), F: 0.1, In: Retry{Delays: []Duration{1}},
		M: map[string]json.RawMessage{"k": json.RawMessage(`{"a":1}`), "a": json.RawMessage(`null`)}, T: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC),
		U: 1234567, N: 7, Raw: json.RawMessage(`[1,2]`), List: []Param{{Name: "p", Type: "string", Value: json.RawMessage(`"v"`)}}}
	b, err := AppendJSON(nil, &in)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a":-5,"b":true,"d":"1m30s","f":0.1,"in":{"delays":["1ns"]},"list":[{"name":"p","type":"string","value":"v"}],"m":{"a":null,"k":{"a":1}},"n":7,"raw":[1,2],"t":"2026-01-02T03:04:05.006Z","u":1.234567,"z":"ü\u0000"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	var out sample
	if err := DecodeJSON(b, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%v\n%+v\n%+v", err, in, out)
	}
	if b, _ = AppendJSON(nil, sample{In: Retry{On: []CategoryPolicy{}}}); string(b) != `{"z":""}` {
		t.Errorf("empty values are written: %s", b)
	}
}

func TestDecodeJSONRefuses(t *testing.T) {
	for src, want := range map[string]string{
		`{"Z":"a"}`:                  `Z: unknown object member name`,
		`{"z":"a","z":"b"}`:          `duplicate name "z"`,
		`{"z":"a"} `:                 "",
		`{"z":"a"}{}`:                "after top-level value",
		`{"z":1}`:                    "z: a JSON number cannot stand here",
		`{"in":{"attempts":1.5}}`:    "in.attempts: invalid syntax",
		`{"n":-1}`:                   "n: invalid syntax",
		`{"list":[{"name":3}]}`:      "list.0.name: a JSON number cannot stand here",
		`{"t":"yesterday"}`:          "t: parsing time",
		`{"d":"forever"}`:            "d: time: invalid duration",
		`{"m":{"a":1,"a":2}}`:        `duplicate name "a"`,
		`{"raw":{"a":1,"a":2}}`:      `duplicate name "a"`,
		`{"u":1e300}`:                "u: 1e+300 is not an amount of money",
		`{"in":{"on":[{"x":1}]}}`:    `in.on.0.x: unknown object member name`,
		`{"a":12345678901234567890}`: "a: value out of range",
		`{"z":"` + "\xff" + `"}`:     "invalid UTF-8 at byte 6",
		`{"z":"a"`:                   "JSON ends",
		`{"b":tru}`:                  "invalid character '}' in literal true",
		`{"z":"\ud83dx"}`:            "surrogate",
		`{"list":{"name":"a"}}`:      `list: a JSON { cannot stand here`,
		`{"b":1}`:                    "b: a JSON number cannot stand here",
		`{"in":[]}`:                  `in: a JSON [ cannot stand here`,
		`{"f":1e999}`:                "f: value out of range",
		`{"in":{"a/b~":"x"}}`:        "in.a/b~: unknown object member name",
		`{"m":[]}`:                   `m: a JSON [ cannot stand here`,
	} {
		err := DecodeJSON([]byte(src), new(sample))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", src, err, want)
		}
	}
	if err := DecodeJSON([]byte(`{"in":{"on":[{"x":1}]}}`), new(sample)); !errors.Is(err, ErrUnknownField) {
		t.Error("the unknown field cannot be told from other errors")
	}
}

func TestAppendJSONRefusesWhatJSONCannotHold(t *testing.T) {
	for _, v := range []any{sample{A: 1<<53 + 1}, sample{F: math.NaN()}, sample{F: math.Inf(1)}, sample{Raw: json.RawMessage(`{`)}} {
		if b, err := AppendJSON(nil, v); err == nil {
			t.Errorf("wrote %s", b)
		}
	}
}

// TestPlanCodec: a plan is read back as it was written and its digest ignores positions only.
func TestPlanCodec(t *testing.T) {
	p := plan(n("a"), n("b", "a"))
	p.Nodes[1].With = json.RawMessage(`{"z": 1, "a": "x"}`)
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want, err := jcs.Transform(b)
	if err != nil || string(want) != string(b) {
		t.Errorf("not canonical: %v\n%s\n%s", err, b, want)
	}
	q, err := DecodePlan(b)
	if err != nil || q.Digest() != p.Digest() || len(p.Digest()) != 64 {
		t.Errorf("%v: %s, %s", err, q.Digest(), p.Digest())
	}
	p.Nodes[0].Pos = "spec.cue:1:2"
	if q.Digest() != p.Digest() {
		t.Error("a position changes the digest")
	}
	p.Nodes[0].Kind = "other"
	if q.Digest() == p.Digest() {
		t.Error("a kind does not change the digest")
	}
	if _, err := DecodePlan([]byte(`{"format":1,"name":"t","nodes":[],"shiny":1}`)); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Error(err)
	}
	if _, err := DecodePlan([]byte(`{"format":99,"name":"t","nodes":[]}`)); err == nil || !strings.Contains(err.Error(), "newer than") {
		t.Error(err)
	}
}

package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dagrun.dev/internal/tree"
)

// job is a rule with every part a rule may have, as data.
const job = `{
	"name": "Job", "types": "map",
	"fields": [
		{"name": "kind", "required": true, "rule": {"types": ["string"], "enum": ["shell", "agent"], "want": "unknown kind; want one of shell, agent"}},
		{"name": "with", "by": "kind", "default": {}, "rule": {"types": ["map"], "open": true}, "cases": {
			"shell": {"types": ["map"], "fields": [{"name": "run", "required": true, "rule": {"types": ["string"]}}]},
			"agent": {"types": ["map"], "fields": [{"name": "soft", "default": false, "rule": {"types": ["bool"]}}]}}},
		{"name": "max", "default": 2, "rule": {"types": ["int"], "min": 0, "max": 20}},
		{"name": "share", "rule": {"types": ["number"], "min": 0, "minExclusive": true, "max": 1, "maxExclusive": true}},
		{"name": "id", "rule": {"types": ["string"], "match": ["^[a-z]+$"], "notMatch": ["x"], "not": ["none"]}},
		{"name": "needs", "rule": {"types": ["list", "map"], "want": "want a list or {of}", "anyOf": [
			{"types": ["list"], "items": {"types": ["string"]}},
			{"types": ["map"], "fields": [{"name": "of", "required": true, "rule": {"types": ["list"], "items": {"types": ["string"]}}}]}]}},
		{"name": "pair", "rule": {"types": ["list"], "prefix": [{"types": ["string"]}, {"types": ["int"]}]}},
		{"name": "many", "rule": {"types": ["list"], "items": {}}},
		{"name": "labels", "rule": {"types": ["map"], "patterns": [{"key": {"types": ["string"], "match": ["^[a-z]"], "want": "want a name"}, "rule": {"types": ["string", "int"]}}]}},
		{"name": "loose", "rule": {"types": ["map"], "open": true, "fields": [{"name": "score", "rule": {"types": ["int"]}}]}},
		{"name": "wait", "rule": {"types": ["string"], "match": ["^[0-9.]+s$"], "want": "want a duration"}},
		{"name": "anything", "rule": {}}
	]}`

func parseRule(t *testing.T, text string) *Rule {
	t.Helper()
	r := new(Rule)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func parse(t *testing.T, text string) *tree.Value {
	t.Helper()
	v, err := tree.ParseJSON("f", []byte(text), tree.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCheck(t *testing.T) {
	r := parseRule(t, job)
	for _, c := range []struct{ value, want string }{
		{`{"kind": "agent"}`, ""},
		{`{"kind": "shell", "with": {"run": "x"}, "max": 20, "share": 0.5, "id": "abc", "needs": ["a"], "pair": ["a", 1], "many": [1, 2], "labels": {"a": 1}, "anything": [{}]}`, ""},
		{`[]`, `f:1:1: want map {kind}, got a list of 0 items`},
		{`{}`, `f:1:1: kind: missing field (want one of shell, agent)`},
		{`{"kind": "shel"}`, `f:1:10: kind: unknown kind; want one of shell, agent, got string "shel"; did you mean "shell"?`},
		{`{"kind": "shell"}`, `f:1:1: with.run: missing field (want string)`},
		{`{"kind": "shell", "with": {"rum": "x"}}`, `f:1:28: with.rum: unknown field; did you mean "run"?` + "\n" + `f:1:27: with.run: missing field (want string)`},
		{`{"run": "x"}`, `f:1:2: run: unknown field here; where kind is shell it belongs under "with"` + "\n" + `f:1:1: kind: missing field (want one of shell, agent)`},
		{`{"kind": "shell", "with": "x"}`, `f:1:27: with: want map {run}, got string "x"`},
		{`{"kind": "agent", "max": 21}`, `f:1:26: max: want an int from 0 to 20, got int 21`},
		{`{"kind": "agent", "max": 2.5}`, `f:1:26: max: want an int from 0 to 20, got float 2.5`},
		{`{"kind": "agent", "share": 1}`, `f:1:28: share: want number >0 <1, got int 1`},
		{`{"kind": "agent", "id": "a1"}`, `f:1:25: id: want string matching ^[a-z]+$ not matching x other than "none", got string "a1"`},
		{`{"kind": "agent", "id": "axe"}`, `id: want string matching`},
		{`{"kind": "agent", "id": "none"}`, `id: want string matching`},
		{`{"kind": "agent", "id": 3}`, `other than "none", got int 3`},
		{`{"kind": "agent", "wait": 5}`, `f:1:27: wait: want a duration, got int 5; did you mean "5s"?`},
		{`{"kind": "agent", "wait": "2.5"}`, `wait: want a duration, got string "2.5"; did you mean "2.5s"?`},
		{`{"kind": "agent", "wait": -1}`, `wait: want a duration, got int -1`},
		{`{"kind": "agent", "with": {"soft": "yes"}}`, `f:1:36: with.soft: want bool, got string "yes"; write true or false`},
		{`{"kind": "agent", "needs": "a"}`, `f:1:28: needs: want a list or {of}, got string "a"; write ["a"]`},
		{`{"kind": "agent", "needs": "a, b"}`, `f:1:28: needs: want a list or {of}, got string "a, b"`},
		{`{"kind": "agent", "needs": ["a", 1]}`, `f:1:34: needs[1]: want string, got int 1; put it in quotes`},
		{`{"kind": "agent", "needs": {"off": []}}`, `f:1:29: needs.off: unknown field; did you mean "of"?` + "\n" + `f:1:28: needs.of: missing field (want list)`},
		{`{"kind": "agent", "pair": ["a"]}`, `f:1:27: pair: want at least 2 items, got 1`},
		{`{"kind": "agent", "pair": ["a", 1, 2]}`, `f:1:36: pair[2]: one item too many; want 2`},
		{`{"kind": "agent", "labels": {"A": 1, "b": true}}`, `f:1:30: labels.A: want a name, got string "A"` + "\n" + `f:1:43: labels.b: want int or string, got bool true`},
		{`{"kind": "agent", "kinds": 1}`, `f:1:19: kinds: unknown field; did you mean "kind"?`},
		{`{"kind": "agent", "zzzzzz": 1}`, `zzzzzz: unknown field; known: anything, id, kind, labels, loose, many, max, needs, pair, share, wait, with`},
		{`{"kind": null}`, `f:1:10: kind: unknown kind; want one of shell, agent, got nothing (null)`},
	} {
		v := parse(t, c.value)
		valid := r.Valid(v)
		ds := r.Check(v, "")
		if got := ds.Error(); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s\n got %s\nwant %s", c.value, got, c.want)
		}
		if valid != (len(ds) == 0) {
			t.Errorf("%s: Valid says %v, Check %v", c.value, valid, ds)
		}
	}
}

func TestDefaults(t *testing.T) {
	r := parseRule(t, job)
	v := parse(t, `{"kind": "agent"}`)
	if ds := r.Check(v, "nodes.a"); len(ds) > 0 {
		t.Fatal(ds)
	}
	want := `{"kind":"agent","with":{"soft":false},"max":2}`
	if got := string(v.AppendJSON(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	v.Get("with").Set("soft", tree.Pos{}, &tree.Value{Kind: tree.Bool, Bool: true})
	again := parse(t, `{"kind": "agent"}`)
	r.Check(again, "")
	if got := string(again.AppendJSON(nil)); got != want {
		t.Errorf("a default is shared between values: %s", got)
	}
}

func TestDoubtsAndTemplates(t *testing.T) {
	r := parseRule(t, job)
	v := parse(t, `{"kind": "agent", "loose": {"scroe": 4, "other": 1}}`)
	_, doubts := r.CheckTemplates(v, "")
	if got := doubts.Error(); got != `f:1:29: loose.scroe: unknown field; did you mean "score"?` {
		t.Errorf("doubts: %s", got)
	}
	// What is nothing but ${...} may become anything; with other text beside it it stays a text.
	for src, want := range map[string]string{
		`{"kind": "agent", "max": "${params.n}", "share": "n"}`: `f:1:50: share: want number >0 <1, got string "n"`,
		`{"kind": "agent", "max": "${params.n}0"}`:              `f:1:26: max: want an int from 0 to 20, got string "${params.n}0"`,
		`{"kind": "${a}x"}`:                    "",
		`{"kind": "agent", "with": "to ${a}"}`: `f:1:27: with: want map {soft}, got string "to ${a}"`,
	} {
		mistakes, _ := r.CheckTemplates(parse(t, src), "")
		if got := mistakes.Error(); got != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"retry", "needs", "timeout", "a", "exec", "appends", "as", "once", "id", "if", "int", "S3/"}
	for want, near := range map[string]string{
		"retires": "retry", "need": "needs", "timout": "timeout", "exce": "exec", "Exec": "exec", "b": "", "zzz": "", "retry": "", "tiemout": "timeout", "": "", "dependsOn": "", "apends": "appends", "retries": "retry",
		// of names as short as these, half of the letters say nothing
		"csv": "", "axec": "exec", "none": "", "kind": "", "in": "int", "integer": "", "on": "", "S3": "S3/",
	} {
		if got := Nearest(want, names); got != near {
			t.Errorf("%q: got %q, want %q", want, got, near)
		}
	}
}

// TestCompilePattern: a pattern that is small to write and large to run is refused before it is compiled.
func TestCompilePattern(t *testing.T) {
	for _, src := range []string{"", "a+", `(?i)^[A-Z][a-z]{2,40}-\d{4}$`, "(" + strings.Repeat("word|", 400) + "end)", "x{1000}"} {
		if re, _, err := CompilePattern(src); err != nil || re == nil {
			t.Errorf("%.40s: %v", src, err)
		}
	}
	for _, src := range []string{strings.Repeat("(x?){1000}", 20), strings.Repeat("x{900}", 10), "((xxxxxxxxxxx){30}y){30}"} {
		if _, n, err := CompilePattern(src); !errors.Is(err, ErrPattern) {
			t.Errorf("%.40s: %d instructions, %v", src, n, err)
		}
	}
	if _, _, err := CompilePattern("("); err == nil || errors.Is(err, ErrPattern) {
		t.Error(err)
	}
}

// UnmarshalJSON reads a list of names; a single one may stand without the list.
func (t *Types) UnmarshalJSON(b []byte) error {
	var names []string
	if len(b) > 0 && b[0] == '"' {
		names = []string{""}
		if err := json.Unmarshal(b, &names[0]); err != nil {
			return err
		}
	} else if err := json.Unmarshal(b, &names); err != nil {
		return err
	}
	*t = 0
next:
	for _, n := range names {
		if n == "number" {
			*t |= Number
			continue
		}
		for k, name := range typeNames {
			if n == name {
				*t |= 1 << k
				continue next
			}
		}
		return fmt.Errorf("unknown type %q; want null, bool, int, float, number, string, list or map", n)
	}
	return nil
}

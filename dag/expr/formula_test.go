package expr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/nodes"
)

// formulas compiles expressions, each NAME=TEXT that others may read, or a text alone, which must be true or false.
func formulas(t *testing.T, list ...string) ([]nodes.Formula, []nodes.Problem) {
	t.Helper()
	l, err := NewLang([]dag.Param{{Name: "p.q", Type: "number", Value: json.RawMessage("2")}})
	if err != nil {
		t.Fatal(err)
	}
	x := &nodes.Formulas{Var: "e", Also: map[string]string{"now": "timestamp"},
		Fields: map[string]string{"path": "string", "meta": "any", "n": "int", "at": "timestamp", "list": "list"}}
	for _, text := range list {
		name, rest, named := strings.Cut(text, ":=")
		if named {
			x.List = append(x.List, nodes.FormulaText{Path: name, Text: rest, Field: name})
		} else {
			x.List = append(x.List, nodes.FormulaText{Path: "if", Text: text, Want: []string{"bool", "int"}})
		}
	}
	return l.Formulas(x)
}

func TestFormulas(t *testing.T) {
	value := func(name string) (any, error) {
		v, ok := map[string]any{
			"path": "a/b", "n": int64(3), "at": time.Unix(100, 0), "now": time.Unix(160, 0), "list": []any{"x", int64(2)},
			"meta": map[string]any{"s": "t", "deep": map[string]any{"n": int64(1), "f": 1.5}},
		}[name]
		if !ok {
			return nil, errors.New("nobody asks for " + name)
		}
		return v, nil
	}
	for _, tt := range []struct{ text, typ, reads, want string }{
		{"e.path + '!'", "string", "path", `"a/b!"`},
		{"e.n * 2", "int", "n", "6"},
		{"double(e.n)", "number", "n", "3"},
		{"(now - e.at).getSeconds()", "int", "at now", "60"},
		{"e.meta.deep.f * params.p.q", "number", "meta", "3"},
		{"e.meta.?gone.orValue(7)", "any", "meta", "7"},
		{"has(e.meta.s) && !has(e.meta.gone)", "bool", "meta", "true"},
		{"e.list.map(x, string(x))", "list", "list", `["x","2"]`},
		{"{'a': e.n}", "map", "n", `{"a":3}`},
		{"e.path.contains('/') ? now > e.at : false", "bool", "path at now", "true"},
		{"e.list", "list", "list", `["x",2]`},
		{"e.meta", "any", "meta", `{"deep":{"f":1.5,"n":1},"s":"t"}`},
		{"params.p.q + 1.0", "number", "", "3"},
	} {
		list, problems := formulas(t, "x:="+tt.text)
		if len(problems) > 0 {
			t.Errorf("%s: %v", tt.text, problems)
			continue
		}
		v, err := list[0].Eval(value)
		raw, _ := json.Marshal(v)
		if _, is := v.(float64); err != nil || string(raw) != tt.want || list[0].Type != tt.typ || strings.Join(list[0].Reads, " ") != tt.reads ||
			tt.typ == "number" && !is {
			t.Errorf("%s: %s (%v), a %s that reads %q", tt.text, raw, err, list[0].Type, list[0].Reads)
		}
	}
	list, problems := formulas(t, "e.b > 1.0", "b:=e.a * 2.0", "a:=double(e.n)")
	if len(problems) > 0 || list[1].Type != "number" || strings.Join(list[1].Reads, "") != "a" {
		t.Errorf("%v %+v", problems, list)
	}
	if v, err := list[0].Eval(func(string) (any, error) { return int64(2), nil }); v != true || err != nil {
		t.Errorf("a whole number of a field that is none: %v %v", v, err)
	}
	list, problems = formulas(t, "e.path", "a:=1.5", "b:=e.a")
	if len(problems) != 1 || problems[0].Text != "want bool or int, got string" {
		t.Errorf("a field that has not the type that is wanted: %+v", problems)
	}
	if v, err := list[2].Eval(func(string) (any, error) { return int64(2), nil }); v != 2.0 || err != nil {
		t.Errorf("a field that is a number: %v %v", v, err)
	}
	list, _ = formulas(t, "e.meta.s", "e.path == '' || 1 / (e.n - 3) > 0")
	if _, err := list[0].Eval(value); err == nil || err.Error() != "want bool or int, got string" {
		t.Errorf("%v", err)
	}
	if _, err := list[1].Eval(value); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("%v", err)
	}
	if _, err := list[1].Eval(func(string) (any, error) { return nil, errors.New("no luck") }); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("%v", err)
	}
}

// Mistakes are found before there is anything to look at.
func TestFormulaMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"e.pth == ''":                    `e has no "pth"; known: at, list, meta, n, path; did you mean "path"?`,
		"e.path > 3":                     "_>_",
		"e.path":                         "want bool or int, got string",
		"x:=now":                         "want a value of JSON, got a timestamp: write string(...)",
		"x:=now - e.at":                  "write string(...)",
		"x:=e.meta.?a":                   "there may be no value",
		"e == 1":                         "e is read by its fields, which are always there: e.NAME; known: at",
		"has(e.path)":                    "e is read by its fields",
		"e.?path.orValue('') == ''":      "e is read by its fields",
		"f.path == ''":                   `unknown name "f"; known: e, now, params`,
		"nodes['a'].out.n > 1":           "nodes['a'].out.n cannot be read here",
		"run.spentUSD > 1.0":             "run.spentUSD cannot be read here",
		"params.r > 1":                   "params.r",
		"[1].exists(e, e.path == '')":    "give the variable of the loop another name",
		"e.n > ${params.p.q}":            "write it without ${}",
		"e.n >":                          "the expression ends too early",
		"x:=e.x + 1":                     "e.x depends on itself",
		"x:=e.y\ny:=e.x":                 "e.x depends on itself",
		"y:=e.pth\nx:=e.y > 3":           `e has no "pth"`,
		"y:=e.path\nx:=e.y > 3\nz:=e.zz": "_>_",
	} {
		_, problems := formulas(t, strings.Split(text, "\n")...)
		if len(problems) == 0 || !strings.Contains(problems[0].Text, want) && !strings.Contains(want, "_>_") || len(problems) > 2 {
			t.Errorf("%q: %+v", text, problems)
		}
	}
}

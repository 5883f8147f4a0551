package compile

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// testKind is a kind of node with a schema and nothing else.
func testKind(name, schema string) nodes.Kind {
	return nodes.Kind{Name: name, Schema: schema, Parse: func(json.RawMessage) (nodes.Settings, error) { return nothing{}, nil }}
}

type nothing struct{}

func (nothing) Traits() nodes.Traits                                    { return nodes.Traits{Effect: "pure"} }
func (nothing) Run(context.Context, *nodes.Task) (*nodes.Result, error) { panic("not run") }

// testKinds are small kinds that use every construct a kind's schema may use.
func testKinds() *nodes.Registry {
	return nodes.NewRegistry(
		testKind("exec", `package spec

// Runs a command.
#Exec: {
	// Program and arguments.
	argv?: [...string]
	run?:  string
	env?: [string]: string | int | bool
	dir: *"." | #Path
	okExit: *[0] | [...int & >=0 & <=255]
	capture: *true | bool
}
`),
		testKind("ask", `package spec

// Asks a model.
#Ask: {
	provider!:  "sim" | "claude" | error("want one of sim, claude")
	prompt!:    string | #AskFile | error("want text or {file: PATH}")
	maxTokens?: int & >=1 & <=1000000
	soft:       *false | bool
	mode:       *"json" | "text" | error("want json or text")
	share?:     number & >0 & <1
	accept?: [...#AskStep]
	tools?: [...string]
	params?: [string]: _
	open?: {known?: string, ...}
	pair?: [string, int]
	tag?: =~"^[a-z]+$" & !="none"
}
#AskFile: {file!: #Path}
#AskStep: {extract?: {to!: #Path, as: *"html" | "text"}, check?: string}
`))
}

// oddKind uses what no kind needs and a schema may hold nevertheless.
var oddKind = testKind("odd", `package spec

#Odd: {
	alt?:   string | {a!: int}
	alt2?:  bool | {a?: int, ...}
	null?:  int | null
	mixed?: [int, ...string]
	not?:   !~"^x" & !~"e$"
	nest: {p: *1 | int, q?: string}
	both?: {#AskFile, n?: int}
	num?:    >0
	version: 1
	words?: [...("a" | "b/c")]
	names?: [=~"^[a-z]$"]: int
	two?: {[=~"^[a-z]$"]: int, [=~"^x[.]"]: string, key!: bool}
	deep?: [string]: [string]: [...{v: *true | bool}]
	pick?: *"a" | "b" | int
}
`)

func testSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.For(testRegistry)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var testRegistry = testKinds()

// TestSchemaCompiles: nothing of the schema of the built-in kinds is left to CUE, and what
// people read of it is in the rules.
func TestSchemaCompiles(t *testing.T) {
	s, err := schema.For(builtinSchemas(t)) // fails for what rules cannot express
	if err != nil {
		t.Fatal(err)
	}
	with := s.Rule("Node").Field("with")
	for _, kind := range s.Kinds {
		if with.By != "kind" || with.Cases[kind] == nil {
			t.Errorf("no rule for the settings of %s", kind)
		} else if with.Cases[kind].Doc == "" {
			t.Errorf("the settings of %s have no description", kind)
		}
	}
	for _, control := range []string{"checkpoint", "route", "approval", "milestone"} {
		if !slices.Contains(s.Kinds, control) {
			t.Errorf("no control node %s", control)
		}
	}
	node := s.Rule("Node")
	if f := node.Field("kind"); !f.Required || f.Doc != "Which kind of work." || f.Rule.Want == "" {
		t.Errorf("kind is %+v", f)
	}
	if r := node.Field("timeout").Rule; len(r.AnyOf) != 2 {
		t.Errorf("timeout is %+v", r)
	}
	if s.Rule("Nothing") != nil {
		t.Error("a rule for an unknown definition")
	}
}

func TestCheckWith(t *testing.T) {
	s := testSchema(t)
	with := tree.ParseText(`{"provider": "sim", "prompt": {"fiel": "x"}}`, tree.Pos{})
	ds := s.CheckSettings("ask", with, "nodes.a.with", true)
	if got := ds.Error(); got != `nodes.a.with.prompt.fiel: unknown field; did you mean "file"?`+"\n"+`nodes.a.with.prompt.file: missing field (want a relative path)` {
		t.Error(got)
	}
	with = tree.ParseText(`{"provider": "sim", "prompt": "x"}`, tree.Pos{})
	if ds := s.CheckSettings("ask", with, "", false); len(ds) > 0 || with.Get("mode").Str != "json" {
		t.Errorf("%v %s", ds, with.AppendJSON(nil))
	}
	if got := s.CheckSettings("aks", with, "w", false).Error(); got != `w: unknown node kind "aks"` {
		t.Error(got)
	}
	node := tree.ParseText(`{"kind": "exec"}`, tree.Pos{})
	if ds := s.CheckNode(node, "nodes.n"); len(ds) > 0 || node.Get("with").Get("dir").Str != "." {
		t.Errorf("%v %s", ds, node.AppendJSON(nil))
	}
}

// TestNewSchemaRefuses: a kind's schema that CUE or rules cannot take is an error that names it.
func TestNewSchemaRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"package spec\n#Bad: {":                            "expected",
		"package spec\n#Bad: {a: #Nothing}":                "#Nothing",
		"package spec\n#Bad: {a?: string, if true {b: 1}}": "rules cannot express #Bad: a comprehension",
		"package spec\n#Bad: {a: string, b: a}":            "#Bad.b: a reference to something else than a definition",
		"package spec\n#Bad: {}\n#Pipeline: {name: 1}":     "#Pipeline: a second definition of that name",
	} {
		_, err := schema.For(nodes.NewRegistry(testKind("bad", text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

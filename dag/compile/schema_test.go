package compile

import (
	"context"
	"encoding/json"
	"testing"

	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// testKind is a kind of node with a schema and nothing else.
type testKind struct{ name, schema string }

func (k testKind) Name() string   { return k.name }
func (k testKind) Schema() string { return k.schema }
func (k testKind) Describe(json.RawMessage) (nodes.Traits, error) {
	return nodes.Traits{Effect: "pure"}, nil
}
func (k testKind) Run(context.Context, *nodes.Task) (*nodes.Result, error) { panic("not run") }

// testKinds are small kinds that use every construct a kind's schema may use.
func testKinds() *nodes.Registry {
	return nodes.NewRegistry(
		testKind{"exec", `package spec

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
`},
		testKind{"ask", `package spec

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
`})
}

// oddKind uses what no kind needs and a schema may hold nevertheless.
var oddKind = testKind{"odd", `package spec

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
`}

func testSchema(t testing.TB) *Schema {
	t.Helper()
	s, err := schemaFor(testRegistry)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var testRegistry = testKinds()

func TestSchemaCompiles(t *testing.T) {
	s := testSchema(t)
	v, err := tree.ParseJSON("p.json", []byte(`{"name":"demo","nodes":{"a":{"kind":"exec","with":{"argv":["true"]}},"b":{"kind":"ask","with":{"provider":"sim","prompt":{"file":"x"},"tag":"none"},"needs":["a","b c"],"timeout":{"atempt":"2x"},"retry":{"attempts":300},"breaker":3}}}`), tree.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + s.Rule("Pipeline").Check(v, "").Error())
	b, _ := json.Marshal(s.Rule("Ask"))
	t.Log(string(b))
	t.Log(string(v.AppendJSON(nil)))
}

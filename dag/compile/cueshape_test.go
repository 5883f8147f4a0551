package compile

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"dagrun.dev/nodes/all"
)

var realKinds = all.Registry()

func compileText(t *testing.T, name, text string) (*Result, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return Compile(Options{Path: name, Kinds: realKinds})
}

// withShape is a pipeline whose agent answers in a shape, for each language.
func withShape(cue bool, shape string) string {
	if !cue {
		return "pipeline:\n  name: p\n  nodes:\n    a:\n      kind: agent\n      with: {provider: claude, prompt: {text: go}, answer: {schema: " + shape + "}}\n"
	}
	return "import (\n\t\"list\"\n\t\"strings\"\n)\n_unused: [list.Max([1]), strings.ToUpper(\"a\")]\n#Fix: {class: \"A\" | \"B\", text: string}\n#Severity: \"high\" | \"low\"\n" +
		"#Ask: {shape: _, kind: \"agent\", with: {provider: \"claude\", prompt: text: \"go\", answer: schema: shape}}\n" +
		"pipeline: {name: \"p\", nodes: a: {for k, v in #Ask & {shape: " + shape + "} if k != \"shape\" {(k): v}}}\n"
}

// a type in CUE, handed through a template, and the JSON Schema that says the same are one plan.
func TestShapeTwins(t *testing.T) {
	for _, tt := range []struct{ cue, yaml string }{
		{`score?: number & >=0 & <=4`, `properties: {score: {type: number, minimum: 0, maximum: 4}}`},
		{`decision: "RELEASE" | "POLISH"`, `properties: {decision: {enum: [RELEASE, POLISH]}}, required: [decision]`},
		{`fixes: [...#Fix]`, `properties: {fixes: {type: array, items: {type: object, properties: {class: {enum: [A, B]}, text: {type: string}}, required: [class, text]}}}, required: [fixes]`},
		{`n: null | string`, `properties: {n: {anyOf: [{type: "null"}, {type: string}]}}, required: [n]`},
		{`s: #Severity | null`, `properties: {s: {anyOf: [{enum: [high, low]}, {type: "null"}]}}, required: [s]`},
		{`p: =~"^a"`, `properties: {p: {type: string, pattern: ^a}}, required: [p]`},
		{`p: !~"a" & !~"b", q: [...string & !~"c"]`, `properties: {p: {type: string, not: {pattern: a|b}}, q: {type: array, items: {type: string, not: {pattern: c}}}}, required: [p, q]`},
		{`p: strings.MinRunes(3) & strings.MaxRunes(10)`, `properties: {p: {type: string, minLength: 3, maxLength: 10}}, required: [p]`},
		{`l: list.MaxItems(4) & list.MinItems(1) & [...int]`, `properties: {l: {type: array, items: {type: integer}, maxItems: 4, minItems: 1}}, required: [l]`},
		{`m: [string]: int`, `properties: {m: {type: object, additionalProperties: {type: integer}}}, required: [m]`},
		{`o: {a!: int, ...}`, `properties: {o: {type: object, properties: {a: {type: integer}}, required: [a], additionalProperties: true}}, required: [o]`},
		{`d: *"x" | string, e: *"p" | "q"`, `properties: {d: {type: string}, e: {enum: [p, q]}}, required: [d, e]`},
		{`i: int64, u: uint64, n: null | int64`, `properties: {i: {type: integer}, u: {type: integer, minimum: 0}, n: {anyOf: [{type: "null"}, {type: integer}]}}, required: [i, u, n]`},
		{`k: "fixed", b: bool, i: int & >0 & <10`, `properties: {k: {const: fixed}, b: {type: boolean}, i: {type: integer, exclusiveMinimum: 0, exclusiveMaximum: 10}}, required: [k, b, i]`},
		{"\n// how good\n// it is\nscore: number\n", `properties: {score: {type: number, description: "how good\nit is"}}, required: [score]`},
		{`type: "object", properties: {a: {type: "string", minLength: 1}}, required: ["a"]`, `properties: {a: {type: string, minLength: 1}}, required: [a]`},
	} {
		a, err := compileText(t, "a.cue", withShape(true, "{"+tt.cue+"}"))
		if err != nil {
			t.Errorf("%s: %v", tt.cue, err)
			continue
		}
		b, err := compileText(t, "b.yaml", withShape(false, "{type: object, "+tt.yaml+"}"))
		if err != nil {
			t.Errorf("%s: %v", tt.yaml, err)
			continue
		}
		if a.Plan.Digest() != b.Plan.Digest() {
			t.Errorf("%s: the plans differ:\n%s\n%s", tt.cue, a.Plan.Nodes[0].With, b.Plan.Nodes[0].With)
		}
	}
}

// A type of CUE stands for a schema where an artifact is held to one too, also in the template of a list.
func TestShapeTwinsOfArtifacts(t *testing.T) {
	cue := `pipeline: {name: "p", nodes: {
	a: {kind: "exec", with: {run: "x", shapes: [{of: "a.json", schema: {n: int & >=0, l: [...string]}}, {of: "b.json", name: "b", schema: {o?: bool}}]}}
	each: {kind: "join", foreach: {in: "['x']", as: "i", key: "i.value", node: {kind: "exec", with: {run: "x", shapes: [{of: "${i.value}.json", schema: {t: string}}]}}}}
}}`
	yaml := `pipeline:
  name: p
  nodes:
    a: {kind: exec, with: {run: x, shapes: [{of: a.json, schema: {type: object, properties: {l: {type: array, items: {type: string}}, n: {type: integer, minimum: 0}}, required: [n, l]}}, {of: b.json, name: b, schema: {type: object, properties: {o: {type: boolean}}}}]}}
    each: {kind: join, foreach: {in: "['x']", as: i, key: i.value, node: {kind: exec, with: {run: x, shapes: [{of: "${i.value}.json", schema: {type: object, properties: {t: {type: string}}, required: [t]}}]}}}}
`
	a, err := compileText(t, "a.cue", cue)
	if err != nil {
		t.Fatal(err)
	}
	b, err := compileText(t, "b.yaml", yaml)
	if err != nil {
		t.Fatal(err)
	}
	if a.Plan.Digest() != b.Plan.Digest() {
		t.Errorf("the plans differ:\n%s\n%s", a.Plan.Nodes[0].With, b.Plan.Nodes[0].With)
	}
}

// mistakes of a shape have a place and say what would be right.
func TestShapeMistakes(t *testing.T) {
	for _, tt := range []struct {
		cue         bool
		shape, want string
	}{
		{false, `{type: object, properties: {a: {type: string, minlength: 3}}}`, `with.answer.schema.properties.a.minlength: a shape does not know this keyword of JSON Schema`},
		{false, `{type: object, properties: {a: {type: string, minlength: 3}}}`, `did you mean "minLength"?`},
		{false, `{type: object, properties: {a: {type: text}}}`, `with.answer.schema.properties.a.type: want one of`},
		{false, `{type: object, properties: {a: {type: string, pattern: "("}}}`, `with.answer.schema.properties.a.pattern`},
		{false, `{type: array, items: {type: string}}`, `with.answer.schema.type: want object`},
		{false, `{properties: {a: {type: string}}}`, `with.answer.schema: missing type`},
		{false, `text`, `with.answer.schema: want a JSON Schema whose type is object`},
		{false, `{type: object, properties: {a: {type: string}}, required: [b]}`, `with.answer.schema.required[0]: "b" is not among the properties`},
		{false, `{type: object, properties: {chars: {type: integer}}}`, `with.answer.schema.properties.chars: the node gives a value "chars" already`},
		{false, `{type: object, properties: {a: {type: [string, integer]}}}`, `with.answer.schema.properties.a: want a field of one type`},
		{false, `{type: object, properties: {"a b": {type: string}}}`, `want a name of letters`},
		{false, `{type: object, properties: {a: {type: string}}}, else: {b: 1}`, `with.answer.else: the values do not fit the schema: else: no field is named b`},
		{true, `{a: int & string}`, `conflicting values`},
		{true, `{a: bytes}`, `with.answer.schema.a: the shape of an answer cannot say bytes`},
		{true, `{a: !=3}`, `a.cue:9:`},
		{true, `{a: [int, string]}`, `needs one type for all its items`},
		{true, `{a: nothere}`, `reference "nothere" not found`},
		{true, `{a: string}}, nodes: b: {kind: "agent", with: {provider: x, prompt: text: string}`, `x`},
	} {
		name := map[bool]string{true: "a.cue", false: "b.yaml"}[tt.cue]
		_, err := compileText(t, name, withShape(tt.cue, tt.shape))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.shape, err, tt.want)
		}
	}
}

// A-1, K-1: fields are outputs with their types; those that an answer may lack are optional in expressions.
func TestShapeOutputs(t *testing.T) {
	const spec = `
pipeline:
  name: p
  nodes:
    a:
      kind: agent
      with:
        provider: claude
        prompt: {text: go}
        answer:
          schema:
            type: object
            properties: {score: {type: number}, n: {anyOf: [{type: integer}, {type: "null"}]}, ok: {type: boolean}, list: {type: array, items: {type: string}}}
            required: [n, ok, list]
    b: {kind: exec, needs: [a], when: "WHEN", with: {argv: ["true"]}}
`
	for _, tt := range []struct{ when, want string }{
		{`nodes['a'].out.ok && nodes['a'].out.list.size() > 0`, ""},
		{`nodes['a'].out.?score.orValue(0.0) >= 2.5`, ""},
		{`nodes['a'].?out.score.orValue(0.0) >= 2.5`, ""},
		{`has(nodes['a'].out.score)`, ""},
		{`nodes['a'].out.score >= 2.5`, `node "a" (b.yaml:6:7) may give no "score": it is optional; write nodes['a'].out.?score.orValue(0.0)`},
		{`nodes['a'].out.n > 1`, `write nodes['a'].out.?n.orValue(0)`},
		{`nodes['a'].out.ok == 'yes'`, `== does not go with (bool, string)`},
		{`nodes['a'].out.skore > 1`, `did you mean "score"?`},
	} {
		_, err := compileText(t, "b.yaml", strings.Replace(spec, "WHEN", tt.when, 1))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.when, err, tt.want)
		}
	}
}

// a setting of an answer that nobody gave is not in the plan: a version of dagrun that knows one more would else find
// each node with a shaped answer changed, and pay for it again.
func TestShapedAnswerHoldsWhatWasGiven(t *testing.T) {
	r, err := compileText(t, "a.yaml", withShape(false, "{type: object, properties: {s: {type: string}}}"))
	if err != nil {
		t.Fatal(err)
	}
	var with struct{ Answer map[string]any }
	if err := json.Unmarshal(r.Plan.Nodes[0].With, &with); err != nil {
		t.Fatal(err)
	}
	if len(with.Answer) != 1 || with.Answer["schema"] == nil {
		t.Errorf("the answer holds %v", with.Answer)
	}
}

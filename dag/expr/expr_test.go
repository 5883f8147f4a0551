package expr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

func lang(t testing.TB, vars ...string) *Lang {
	t.Helper()
	l, err := NewLang([]dag.Param{
		{Name: "agent.provider", Type: "string", Value: json.RawMessage(`"sim"`)},
		{Name: "agent.turns", Type: "int", Value: json.RawMessage(`7`)},
		{Name: "limit", Type: "number", Value: json.RawMessage(`2`)},
	}, vars...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// scope is a run's record for tests.
type scope struct {
	views map[string]dag.View
	facts map[string]any
}

func (s scope) View(id string) (dag.View, bool) { v, ok := s.views[id]; return v, ok }
func (s scope) Run() map[string]any             { return s.facts }

func out(kv ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = json.RawMessage(kv[i+1])
	}
	return m
}

// decls of two nodes: a always has values, b may have none.
var decls = Decls{Run: true, Node: func(id string) (NodeDecl, error) {
	outputs := map[string]string{"n": "int", "score": "number", "text": "string", "ok": "bool", "list": "list", "m": "map"}
	switch id {
	case "a", "x/a":
		return NodeDecl{Outputs: outputs, Pos: "p.yaml:4:5"}, nil
	case "b":
		return NodeDecl{Outputs: outputs, Pos: "p.yaml:9:5", Missing: "it has a `when`"}, nil
	}
	return NodeDecl{}, fmt.Errorf("node %q is not before this node", id)
}}

var record = scope{
	views: map[string]dag.View{
		"a":   {Status: "completed", Generation: 2, Out: out("n", "3", "score", "4", "text", `"hi"`, "ok", "true", "list", `[1,{"k":"v"}]`, "m", `{"x":{"y":5}}`)},
		"x/a": {Status: "completed", Generation: 1, Out: out("n", "10")},
		"b":   {Status: "skipped", Generation: 1},
	},
	facts: map[string]any{"spentUSD": 1.5, "completed": 3},
}

func TestExpressionsEvaluate(t *testing.T) {
	l := lang(t)
	for _, c := range []struct{ src, typ, want string }{
		{`1 + 2`, "int", `3`},
		{`params.agent.provider == 'sim'`, "bool", `true`},
		{`params.agent`, "map", `{"provider":"sim","turns":7}`},
		{`params.limit / 4.0`, "number", `0.5`},
		{`nodes['a'].out.n + nodes["x/a"].out.n`, "int", `13`},
		{`nodes['a'].out.score >= 3.5 && nodes['a'].out.score > 3`, "bool", `true`},
		{`nodes['a'].out.list[1].k`, "any", `"v"`},
		{`nodes['a'].out.m.x.y`, "any", `5`},
		{`nodes['a'].out['text'] + '!'`, "string", `"hi!"`},
		{`nodes['b'].?out.n.orValue(9)`, "int", `9`},
		{`nodes['a'].?out.n.orValue(9)`, "int", `3`},
		{`nodes['b'].out.?n.hasValue()`, "bool", `false`},
		{`nodes[?'b'].out.m.x.y.orValue(1)`, "any", `1`},
		{`nodes['a'].?out.m.x.y.orValue(1)`, "any", `5`},
		{`has(nodes['b'].out.n) ? 1 : 2`, "int", `2`},
		{`has(nodes['a'].out.n) ? 1 : 2`, "int", `1`},
		{`nodes['b'].status + nodes['a'].category`, "string", `"skipped"`},
		{`nodes['a'].generation`, "int", `2`},
		{`run.spentUSD > 1 && run.completed == 3`, "bool", `true`},
		{`[1, 2].map(nodes, nodes * 2)`, "list", `[2,4]`},
		{`floor(5 * 2 / 5.0 * 1.0)`, "", ``},
		{`floor(7.9) + floor(3)`, "int", `10`},
		{`rotate(['F1','F2','F3','F4','F5'], floor(5 * 2 / 5))`, "list", `["F3","F4","F5","F1","F2"]`},
		{`rotate([1, 2, 3], -1)`, "list", `[3,1,2]`},
		{`rotate([], 3)`, "list", `[]`},
		{`[1, 2, 3, 4, 5].slice(1, 3)`, "list", `[2,3]`},
		{`pad(7, 3) + pad(-7, 3) + pad(1234, 3)`, "string", `"007-0071234"`},
		{`['a', 'b'].join(', ') + 'x'.upperAscii()`, "string", `"a, bX"`},
		{`json({'b': 1, 'a': [true, null, 1.5]})`, "string", `"{\"a\":[true,null,1.5],\"b\":1}"`},
		{`math.greatest(1, 5)`, "int", `5`},
		{`sets.contains([1, 2], [2])`, "bool", `true`},
		{`'%d of %s'.format([3, 'x'])`, "string", `"3 of x"`},
		{`{'x': 2.0, 'y': [1u]}`, "map", `{"x":2,"y":[1]}`},
	} {
		e, problems := l.Parse(c.src)
		var p *Program
		if len(problems) == 0 {
			p, problems = e.Check(decls, "")
		}
		if c.typ == "" {
			if len(problems) == 0 {
				t.Errorf("%s: want a type error", c.src)
			}
			continue
		}
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.src, problems)
			continue
		}
		v, err := p.Eval(nil, record)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if got := string(v.AppendJSON(nil)); got != c.want || p.Type != c.typ {
			t.Errorf("%s = %s (%s), want %s (%s)", c.src, got, p.Type, c.want, c.typ)
		}
	}
}

// B-7: what a node does not declare is an error that names both places.
func TestMistakesNameBothPlaces(t *testing.T) {
	l := lang(t, "s")
	for _, c := range []struct{ src, want string }{
		{`nodes['a'].out.scroe > 1.0`, `node "a" (p.yaml:4:5) declares no output "scroe"; known: list, m, n, ok, score, text; did you mean "score"?`},
		{`1 < nodes['x/a'].out.nn`, `node "x/a" (p.yaml:4:5) declares no output "nn"; known: list, m, n, ok, score, text`},
		{`nodes['b'].out.n > 1`, "node \"b\" (p.yaml:9:5) may have no values: it has a `when`; write nodes['b'].?out.n.orValue(0)"},
		{`nodes['a'].status == 'complete'`, `no status is "complete"; known: pending, running, completed, failed, skipped, cancelled, undone; did you mean "completed"?`},
		{`'Failed' != nodes['a'].status`, `no status is "Failed"; known: pending, running, completed, failed, skipped, cancelled, undone; did you mean "failed"?`},
		{`nodes['a'].status in ['failed', 'rejected']`, `no status is "rejected"; known: pending`},
		{`nodes['c'].status == 'failed'`, `node "c" is not before this node`},
		{`nodes.a.out.n`, `write nodes['a']: ids stand in brackets`},
		{`nodes[s.key].out.n`, `nodes[...] takes a literal id: a plan must know what is read`},
		{`nodes['a']`, `say what of the node: nodes['a'].out.name, .status, .category, .generation or .items`},
		{`nodes['a'].state`, `nodes['a'] has no "state"; it has out, status, category, generation`},
		{`size(nodes)`, `nodes is read one at a time: nodes['id'].out.name, .status, .category, .generation or .items`},
		{`params.agent.provdier`, `no params.agent.provdier; known: agent, agent.provider, agent.turns, limit; did you mean "agent.provider"?`},
		{`run.spend`, `no run.spend; known: capTokens, capUSD, compensations, completed, ending, failed, name, reservedUSD, seconds, skipped, spentTokens, spentUSD`},
		{`nodse['a'].out.n`, `unknown name "nodse"; known: nodes, params, run, s; did you mean "nodes"?`},
		{`HOME`, `unknown name "HOME"; known: nodes, params, run, s`},
		{`1 +`, `the expression ends too early; the language is CEL: ==, &&, ||, ! (dagrun explain expressions)`},
		{`params.limit = 1.0`, `cannot be read from '= ' on; the language is CEL: ==`},
		{`true and false`, `mismatched input 'and'; the language is CEL`},
		{`len([1])`, `no function "len"`},
		{`'a'.startswith('a')`, `no function "startswith"; did you mean "startsWith"?`},
		{`nodes['a'].out.text + 1`, `+ does not go with (string, int)`},
		{`nodes['a'].out.n + nodes['x/a'].out.text`, `+ does not go with (int, string)`},
		{`nodes['b'].?out.n > 1`, `> does not go with (optional(int), int)`},
		{strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200), `recursion`},
		{strings.Repeat("1+", 10000) + "1", `longer than 16384 bytes`},
	} {
		e, problems := l.Parse(c.src)
		if len(problems) == 0 {
			_, problems = e.Check(decls, "")
		}
		if len(problems) == 0 {
			t.Errorf("%s: no problem found", c.src)
			continue
		}
		if got := problems[0]; !strings.Contains(got, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.src, got, c.want)
		}
	}
}

func TestWantedTypes(t *testing.T) {
	l := lang(t)
	for _, c := range []struct{ src, want, problem string }{
		{`nodes['a'].out.ok`, "bool", ""},
		{`nodes['a'].out.list[0]`, "bool", ""}, // known only when evaluated
		{`1`, "number", ""},
		{`nodes['a'].out.n`, "bool", "want bool, got int"},
		{`nodes['b'].?out.ok`, "bool", "want bool, got optional; write .orValue(...) to say what holds without a value"},
	} {
		e, problems := l.Parse(c.src)
		if len(problems) == 0 {
			_, problems = e.Check(decls, c.want)
		}
		got := ""
		if len(problems) > 0 {
			got = problems[0]
		}
		if got != c.problem {
			t.Errorf("%s: got %q, want %q", c.src, got, c.problem)
		}
	}
}

// One shape is compiled once, whatever the ids.
func TestExpressionsOfOneShapeShareAProgram(t *testing.T) {
	l := lang(t)
	for i := range 50 {
		src := fmt.Sprintf("nodes['n/%d'].out.ok && 'nodes[\"x\"]' != ''", i)
		e, problems := l.Parse(src)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if r := e.Refs(); len(r) != 1 || r[0].Node != fmt.Sprintf("n/%d", i) {
			t.Fatalf("%s reads %v", src, r)
		}
	}
	if len(l.shapes) != 1 {
		t.Errorf("%d shapes, want 1", len(l.shapes))
	}
}

func TestShape(t *testing.T) {
	for src, want := range map[string]string{
		`nodes['a'].out.x + nodes[ "b/c" ].out.y`: `nodes['#0'].out.x + nodes[ "#1" ].out.y`,
		`nodes[?'a'].out.x`:                       `nodes[?'#0'].out.x`,
		`'nodes[\'a\']' + nodes['b'].status`:      `'nodes[\'a\']' + nodes['#0'].status`,
		`r'\' + nodes['b'].status`:                `r'\' + nodes['#0'].status`,
		"// nodes['a']\nnodes['b'].status":        "// nodes['a']\nnodes['#0'].status",
		`x.nodes['a'] + mynodes['a']`:             `x.nodes['a'] + mynodes['a']`,
		`nodes['a' + 'b'].status`:                 `nodes['a' + 'b'].status`,
		`nodes[''].status`:                        `nodes[''].status`,
		`nodes['a`:                                `nodes['a`,
	} {
		if got, _ := shape(src); got != want {
			t.Errorf("shape(%s) = %s, want %s", src, got, want)
		}
	}
}

func TestEvaluationIsBounded(t *testing.T) {
	l := lang(t)
	for _, src := range []string{
		`lists.range(100000).map(x, lists.range(100000).map(y, x * y))`,
		`lists.range(1000000000)`,
		`lists.range(100000).map(x, 'some text of forty characters, more or less'.replace('o', 'a text of thirty characters...'))`,
		`cel.bind(a, 'xxxxxxxxxx', cel.bind(b, a+a+a+a+a+a+a+a, cel.bind(c, b+b+b+b+b+b+b+b, cel.bind(d, c+c+c+c+c+c+c+c, cel.bind(e, d+d+d+d+d+d+d+d, cel.bind(f, e+e+e+e+e+e+e+e, cel.bind(g, f+f+f+f+f+f+f+f, cel.bind(h, g+g+g+g+g+g+g+g, size(h+h+h+h)))))))))`,
		`pad(1, 1000000000)`,
		`'%.1000000000f'.format([1.0])`,
	} {
		p, err := l.program(src, decls, "")
		if err != nil {
			continue // refused before
		}
		if v, err := p.Eval(nil, record); err == nil {
			t.Errorf("%s: got a %d of %d items, want an error", src, v.Kind, len(v.Items))
		}
	}
}

func TestRecordedValuesKeepTheirDeclaredTypes(t *testing.T) {
	l := lang(t)
	rec := scope{views: map[string]dag.View{"a": {Status: "completed", Out: out("n", `"three"`, "score", `null`)}}}
	for src, want := range map[string]string{
		`nodes['a'].out.n + 1`:                    "nodes['a'].out.n is declared int and holds string",
		`nodes['a'].out.score`:                    "nodes['a'].out.score has no value",
		`nodes['x/a'].out.n`:                      "may not be read here",
		`nodes['a'].out.ok || 1 / size('') > 1`:   "has no value",
		`run.spentUSD > 0.0`:                      "is not given by this host",
		`[nodes['a'].status == 'failed', 1/0==0]`: "division by zero",
	} {
		p, err := l.program(src, decls, "")
		if err == nil {
			_, err = p.Eval(nil, rec)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", src, err, want)
		}
	}
}

func TestSplitAndJoin(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []Piece
	}{
		{"", nil},
		{"plain $ text {x}", []Piece{{Text: "plain $ text {x}"}}},
		{"a${x}b", []Piece{{Text: "a"}, {Source: "x"}, {Text: "b"}}},
		{"${ {'a': '}'}['a'] }", []Piece{{Source: "{'a': '}'}['a']"}}},
		{"$${HOME} $$${x}", []Piece{{Text: "${HOME} $${x}"}}},
		{"${'$${'}", []Piece{{Source: "'$${'"}}},
	} {
		got, err := Split(c.in)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("Split(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{"${", "${x", "${'}", "${}", "a ${ } b"} {
		if _, err := Split(bad); err == nil {
			t.Errorf("Split(%q): want an error", bad)
		}
	}
}

// FuzzTemplates: any text survives Escape, and Join is the inverse of Split.
func FuzzTemplates(f *testing.F) {
	for _, s := range []string{"", "a${x}b", "$${", "$$${x}", "${'}'}", "$", "${{}}", "é${1}", "$${}${x}$"} {
		f.Add(s)
	}
	l, err := NewLang(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Split(Escape(s))
		if err != nil || len(p) > 1 || len(p) == 1 && p[0].Text != s || len(p) == 0 && s != "" {
			t.Fatalf("Escape(%q) reads back as %q, %v", s, p, err)
		}
		pieces, err := Split(s)
		if err != nil {
			return
		}
		again, err := Split(Join(pieces))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(pieces) {
			t.Fatalf("Split(%q) = %q, then %q (%v)", s, pieces, again, err)
		}
		if len(s) < 200 { // neither panics nor runs away, whatever is written
			if m, mistakes := l.Template(&tree.Value{Kind: tree.String, Str: s}, "", false, decls); len(mistakes) == 0 {
				_, _ = m.Fill(nil, record, false)
			}
		}
	})
}

func BenchmarkEval(b *testing.B) {
	l := lang(b, "s", "p")
	vars := map[string]any{
		"s": Item(map[string]any{"files": []any{"a", "b", "c", "d", "e"}}, "S1", 0, 7),
		"p": Item("B", "B", 3, 8),
	}
	for name, src := range map[string]string{
		"text":   `'car/' + s.key + '/p' + string(p.n)`,
		"rotate": `rotate(s.value.files, {'A': 0, 'B': floor(size(s.value.files) * 2 / 5)}[p.key])`,
		"loop":   `s.value.files.map(f, f + '.md')`,
	} {
		b.Run(name, func(b *testing.B) {
			p, err := l.program(src, Decls{}, "")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Eval(vars, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("condition", func(b *testing.B) { // parse by shape, then evaluate
		for b.Loop() {
			p, err := l.program(`nodes['a'].out.score >= 3.5 && nodes['b'].?out.ok.orValue(true)`, decls, "bool")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Eval(nil, record); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// W-2: what the items of a run-time foreach record is a list, typed like the values of nodes.
func TestItems(t *testing.T) {
	decls := func(missing string) Decls {
		return Decls{Node: func(id string) (NodeDecl, error) {
			if id == "none" {
				return NodeDecl{Pos: "p.yaml:9:5"}, nil
			}
			outputs := map[string]string{"rows": "int", "score": "number", "note": "string?", "id": "int"}
			return NodeDecl{Items: &Items{Outputs: outputs, Missing: missing}}, nil
		}}
	}
	item := func(key string, status dag.Status, kv ...string) dag.Item {
		return dag.Item{Key: key, Status: status, Out: out(kv...), Outputs: map[string]string{"score": "number"}}
	}
	record := scope{views: map[string]dag.View{"each": {Status: "completed", Items: func() []dag.Item {
		return []dag.Item{
			item("b", "completed", "rows", "2", "score", "3", "id", "9007199254740993"),
			item("a", "completed", "rows", "1", "score", "0.5", "note", `"x"`, "id", "1"), item("c", "failed")}
	}}}}
	const some = "the items have `onFail: continue`"
	for _, tt := range []struct{ src, missing, want string }{
		{"nodes['each'].items.map(i, i.key).join()", "", `"bac"`},
		{"nodes['each'].items.size()", "", "3"},
		{"nodes['each'].items[0].out.rows + 1", "", "3"},
		{"nodes['each'].items[0].out['rows'] + 1", "", "3"},
		{"nodes['each'].items[0].out.score * 2.0", "", "6"},
		{"nodes['each'].items[0].out.id", "", "9007199254740993"},
		{"nodes['each'].items.map(i, i.out.?note.orValue('-'))", "", `["-","x","-"]`},
		{"nodes['each'].items.map(i, i.out[?'note'].orValue('-'))", "", `["-","x","-"]`},
		{"nodes['each'].items.filter(i, i.status == 'completed').map(i, i.out.rows)", some, "[2,1]"},
		{"nodes['each'].items.map(i, i.status == 'completed', string(i.out.rows)).join('+')", some, `"2+1"`},
		{"nodes['each'].items.filter(i, i.status == 'completed').sortBy(i, i.out.rows).map(i, i.key)", some, `["a","b"]`},
		{"cel.bind(ok, nodes['each'].items.filter(x, has(x.out.rows)), ok.map(y, y.out.rows))", some, "[2,1]"},
		{"nodes['each'].items.map(i, has(i.out.rows) ? i.out.rows : 0)", some, "[2,1,0]"},
		{"nodes['each'].items.all(i, i.status != 'completed' || i.out.rows > 0)", some, "true"},
		{"nodes['each'].items.exists(i, !(i.status != 'completed') && i.out.rows == 1)", some, "true"},
		{"nodes['each'].items[0].status == 'completed' ? nodes['each'].items[0].out.rows : 0", some, "2"},
		{"nodes['each'].?items.orValue([]).size()", "", "3"},
		{"json(nodes['each'].items[1].out)", "", `"{\"id\":1,\"note\":\"x\",\"rows\":1,\"score\":0.5}"`},
		{"nodes['each'].items.filter(i, i.status == 'failed').map(i, i.key)", some, `["c"]`},

		{"nodes['each'].items.map(i, i.out.rows)", some, "an item may have no \"rows\": the items have `onFail: continue`; " +
			"write .out.?rows.orValue(0), or take only the items whose status is 'completed'"},
		{"nodes['each'].items.filter(i, i.status == 'failed').map(i, i.out.rows)", some, "may have no"},
		{"nodes['each'].items.filter(i, i.status == 'completed' || true).map(i, i.out.rows)", some, "may have no"},
		{"nodes['each'].items.map(i, nodes['each'].items.exists(i, i.status == 'completed') && i.out.rows > 1)", some, "may have no"},
		{"nodes['each'].items.map(i, i.out.note)", "", "it is optional; write .out.?note.orValue('')"},
		{"nodes['each'].items.map(i, i.out.rwos)", "", `did you mean "rows"?`},
		{"nodes['each'].items.map(i, i.name)", "", "an item has key, status and out"},
		{"nodes['each'].items.map(i, i.key + i.out.rows)", "", "+ does not go with (string, int)"},
		{"nodes['each'].items.map(i, i + 1)", "", "(an item, int)"},
		{"nodes['each'].items.filter(i, i.status == 'done')", "", `no status is "done"`},
		{"nodes['none'].items", "", "has no items: only the join of a run-time foreach has"},
	} {
		e, problems := lang(t).Parse(tt.src)
		var p *Program
		if len(problems) == 0 {
			p, problems = e.Check(decls(tt.missing), "")
		}
		if len(problems) > 0 {
			if !strings.Contains(problems[0], tt.want) {
				t.Errorf("%s: %v, want %s", tt.src, problems, tt.want)
			}
			continue
		}
		v, err := p.Eval(nil, record)
		if err != nil || string(v.AppendJSON(nil)) != tt.want {
			t.Errorf("%s: %v, %v, want %s", tt.src, v, err, tt.want)
		}
	}
}

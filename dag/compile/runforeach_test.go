package compile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dagrun.dev/dag"
)

// record is what expressions see of a run, for tests.
type record map[string]dag.View

func (r record) View(id string) (dag.View, bool) { v, ok := r[id]; return v, ok }
func (r record) Run() map[string]any             { return nil }

func values(kv ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = json.RawMessage(kv[i+1])
	}
	return m
}

const outlineSpec = `pipeline:
  name: outline
  params: {tone: {type: string, default: dry}}
  pools: {llm: 3}
  defaults: {ask: {pool: llm, labels: {by: default}}, "*": {retry: {attempts: 7}}}
  nodes:
    outline: {kind: sh, with: {values: {sections: list, style: string}}}
    write:
      kind: join
      needs: [outline]
      group: sections
      foreach:
        in: nodes['outline'].out.sections
        as: sec
        key: sec.value.id
        most: 4
        node:
          kind: ask
          title: "Section ${sec.n} of ${sec.count}: ${sec.value.title}"
          when: "nodes['outline'].out.style != 'none'"
          with: {cmd: "${sec.value.title} in ${nodes['outline'].out.style}, ${params.tone}, $${literal}", n: "${sec.value.words}", files: [brief.md], writes: ["sections/${sec.key}.md"]}
          labels: {section: "${sec.key}"}
    collect: {kind: sh, needs: [write]}
`

func outline(t *testing.T, spec string) (*Result, dag.Evaluator) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"spec.yaml": spec, "brief.md": "be brief"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	res, err := compileIn(dir, "spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// A run reads its plan back from where it was adopted.
	raw, err := res.Plan.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p, err := dag.DecodePlan(raw)
	if err != nil {
		t.Fatal(err)
	}
	eval, err := NewEvaluator(p, planKinds)
	if err != nil {
		t.Fatal(err)
	}
	return res, eval
}

// L-9: nodes for work found while running are complete: defaults, settings, files, needs.
func TestExpandMakesCompleteNodes(t *testing.T) {
	res, eval := outline(t, outlineSpec)
	i, _ := res.Graph.Index("write")
	sections := `[{"id":"intro","title":"Why","words":10},{"id":"end","title":"What ${now}","words":20}]`
	got, err := eval.Expand(res.Graph.Node(i), record{
		"outline": {Status: "completed", Out: values("sections", sections, "style", `"verse"`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"id":"write/intro","kind":"ask","title":"Section 1 of 2: Why","with":{"cmd":"Why in verse, dry, ${literal}","files":["brief.md"],"mode":"fast","n":10,"writes":["sections/intro.md"]},"needs":["write"],"when":"nodes['outline'].out.style != 'none'","writes":["sections/intro.md"],"files":["brief.md"],"effect":"idempotent","retry":{"attempts":7,"stated":true,"base":"5s","factor":2,"cap":"2m0s","jitter":0.2},"timeout":{"grace":"5s"},"pool":"llm","call":{"chars":401,"files":["brief.md"]},"group":"sections","labels":{"by":"default","section":"intro"}}`,
		`{"id":"write/end","kind":"ask","title":"Section 2 of 2: What ${now}","with":{"cmd":"What ${now} in verse, dry, ${literal}","files":["brief.md"],"mode":"fast","n":20,"writes":["sections/end.md"]},"needs":["write"],"when":"nodes['outline'].out.style != 'none'","writes":["sections/end.md"],"files":["brief.md"],"effect":"idempotent","retry":{"attempts":7,"stated":true,"base":"5s","factor":2,"cap":"2m0s","jitter":0.2},"timeout":{"grace":"5s"},"pool":"llm","call":{"chars":401,"files":["brief.md"]},"group":"sections","labels":{"by":"default","section":"end"}}`,
	}
	for k := range want {
		b, _ := json.Marshal(got[k])
		s := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
		if s != want[k] {
			t.Errorf("item %d:\n got %s\nwant %s", k, s, want[k])
		}
	}
	if _, err := res.Graph.Extend("write", got); err != nil {
		t.Errorf("the graph does not take the nodes: %v", err)
	}
}

func TestExpandRefusesWhatItCannotName(t *testing.T) {
	res, eval := outline(t, outlineSpec)
	i, _ := res.Graph.Index("write")
	for _, c := range []struct{ sections, want string }{
		{`[]`, ""},
		{`[{"id":"a","title":"x","words":1},{"id":"A","title":"y","words":1}]`, `item 2: key "A": item 1 has it already`},
		{`[{"id":"a b","title":"x","words":1}]`, `item 1: key "a b": want ASCII letters, digits, '.', '_', '-', starting with a letter or digit; slug(text) makes`},
		{`[{"id":"../x","title":"x","words":1}]`, `item 1: key "../x": want ASCII letters`},
		{`[{"title":"x","words":1}]`, `item 1: key: "sec.value.id": no such key: id`},
		{`[{"id":"a","title":"x","words":500}]`, `item 1: nodes.write/a.with.n: want an int from 0 to 100, got int 500`},
		{`[{"id":"a","title":"x","words":"many"}]`, `item 1: nodes.write/a.with.n: want an int from 0 to 100, got string "many"`},
		{`[{"id":"` + strings.Repeat("x", 300) + `","title":"x","words":1}]`, "the id has 306 characters"},
		{`[1,2,3,4,5]`, "in: 5 items; want at most 4 (see `most`)"},
		{`{"a":1}`, `in: "nodes['outline'].out.sections": nodes['outline'].out.sections is declared list and holds map`},
	} {
		got, err := eval.Expand(res.Graph.Node(i), record{
			"outline": {Status: "completed", Out: values("sections", c.sections, "style", `"verse"`)},
		})
		if c.want == "" {
			if err != nil || len(got) != 0 {
				t.Errorf("%s: %v, %v", c.sections, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.sections, err, c.want)
		}
	}
}

func TestRunForeachIsCheckedBeforehand(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"nodes['outline'].out.sections\n", "nodes['outline'].out.section\n", `nodes.write.foreach.in: in "nodes['outline'].out.section": node "outline" (spec.yaml:7:14) declares no output "section"; known: sections, style; did you mean "sections"?`},
		{"nodes['outline'].out.sections\n", "nodes['outline'].out.style\n", `nodes.write.foreach.in: in "nodes['outline'].out.style": want list, got string`},
		{"key: sec.value.id", "key: sex.value.id", `nodes.write.foreach.key: in "sex.value.id": unknown name "sex"; known: nodes, params, run, sec; did you mean "sec"?`},
		{"${sec.value.title} in", "${sec.value.title + nodes['outline'].out.stile} in", `nodes.write.foreach.node.with.cmd: in "${sec.value.title + nodes['outline'].out…": node "outline" (spec.yaml:7:14) declares no output "stile"; known: sections, style; did you mean "style"?`},
		{"kind: ask\n", "kind: \"${sec.key}\"\n", "nodes.write.foreach.node.kind: the kind is fixed: want one of approval"},
		{"labels: {section", "lables: {section", `nodes.write.foreach.node.lables: unknown field; did you mean "labels"?`},
		{"files: [brief.md]", "files: [bref.md]", `nodes.write.foreach.node.with.files[0]: no file bref.md in the folder of the spec; did you mean "brief.md"?`},
		{"kind: ask\n", "kind: ask\n          needs: [outlin]\n", `nodes.write.foreach.node.needs[0]: no node "outlin"; did you mean "outline"?`},
		{"kind: ask\n", "kind: ask\n          pool: lmm\n", `nodes.write.foreach.node.pool: no pool "lmm"; did you mean "llm"?`},
		{"when: \"nodes['outline'].out.style != 'none'\"", "when: \"sec.value.title != ''\"",
			"nodes.write.foreach.node.when: a condition is read when its item is filled in: write what is of the item as ${sec.value}"},
		{"when: \"nodes['outline'].out.style != 'none'\"", "when: \"1 +\"", `nodes.write.foreach.node.when: in "1 +": `},
		{"kind: ask\n", "kind: ask\n          breaker: api\n", `nodes.write.foreach.node.breaker: no breaker "api"; the pipeline declares none`},
		{"kind: ask\n", "kind: ask\n          appends: [notes]\n", `nodes.write.foreach.node.appends[0]: no accumulator "notes"; the pipeline declares none`},
		{"kind: ask\n", "kind: ask\n          retry: {on: {timeot: {attempts: 2}}}\n", `nodes.write.foreach.node.retry.on.timeot: no category "timeot"; did you mean "timeout"?`},
		{"kind: ask\n", "kind: ask\n          reads: [../x]\n", `nodes.write.foreach.node.reads[0]: the path "../x" leads out of its folder`},
		{"as: sec\n", "as: run\n", `nodes.write.foreach.as: want a name for expressions: letters, digits and '_', and none that means something there already`},
	} {
		if !strings.Contains(outlineSpec, c.old) {
			t.Fatalf("the spec has no %q", c.old)
		}
		dir := t.TempDir()
		for name, text := range map[string]string{"spec.yaml": strings.Replace(outlineSpec, c.old, c.new, 1), "brief.md": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := compileIn(dir, "spec.yaml")
		if err == nil {
			t.Errorf("%s: no mistake found", c.new)
			continue
		}
		lines := strings.ReplaceAll(strings.Join(diagnostics(t, err), "\n"), dir+"/", "")
		if !strings.Contains(lines, c.want) {
			t.Errorf("%s:\n got %s\nwant %s", c.new, lines, c.want)
		}
	}
}

func TestResolveFillsSettings(t *testing.T) {
	dir := t.TempDir()
	spec := `pipeline:
  name: late
  params: {who: {type: string, default: "$"}}
  nodes:
    a: {kind: sh, with: {values: {text: string, n: int, list: list, m: map}}}
    b: {kind: sh, needs: [a], with: {cmd: "${params.who}${nodes['a'].out.text} $${HOME} ${nodes['a'].out.n + 1}", n: "${nodes['a'].out.n}", list: "${rotate(nodes['a'].out.list, 1)}", m: {x: "${nodes['a'].out.m}", y: "$${z}"}}}
`
	if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
	res, err := compileIn(dir, "spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	eval, err := NewEvaluator(res.Plan, planKinds)
	if err != nil {
		t.Fatal(err)
	}
	sc := record{"a": {Status: "completed", Out: values("text", `"a ${b} \"c\""`, "n", "4", "list", `["x","y"]`, "m", `{"k":[1,2.5,null]}`)}}
	got, err := eval.Resolve(res.Plan.Nodes[1].With, sc)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cmd":"$a ${b} \"c\" ${HOME} 5","list":["y","x"],"m":{"x":{"k":[1,2.5,null]},"y":"${z}"},"mode":"fast","n":4}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err = eval.Resolve(res.Plan.Nodes[1].With, record{"a": {Status: "skipped"}})
	if err == nil || !strings.Contains(err.Error(), "nodes['a'].out.text has no value") {
		t.Errorf("a missing value: %v", err)
	}
	if _, err := eval.Condition("1 + 1", sc); err == nil || !strings.Contains(err.Error(), "want bool, got int") {
		t.Errorf("a condition that is none: %v", err)
	}
}

// TestExpandedNodesHaveThePoliciesOfWrittenOnes: whatever the layers of defaults say, a node of a run-time foreach is
// run as the same node written out.
func TestExpandedNodesHaveThePoliciesOfWrittenOnes(t *testing.T) {
	layers := map[string][]string{
		"retry": {"", "{attempts: 2}", "{base: 1s}", "{delays: [1s, 2s]}", "{cap: 9s, jitter: 0.5, on: {timeout: {attempts: 4, then: fail}}}",
			"{delays: [3s], on: {timeout: {base: 7s}, auth: {then: retry}}}"},
		"timeout": {"", "10s", "{attempt: 20s, silence: 3s}", "{silence: 4s, growth: 2}", "{grace: 1s, total: 1h}",
			`"${'30s'}"`},
		"reserve":  {"", "{usd: 1}", "{tokens: 7}"},
		"estimate": {"", "{seconds: 3}", "{usd: 0.5, tokens: 4}"},
		"labels":   {"", "{a: x}", "{a: y, b: z}"},
		"onFail":   {"", "continue", "skip"},
	}
	for field, all := range layers {
		for _, ofKind := range all {
			for _, ofAll := range all {
				samePolicies(t, field, all, ofKind, ofAll)
			}
		}
	}
}

// samePolicies compiles a node with each value of a field, written out and as a template, under two layers of defaults.
func samePolicies(t *testing.T, field string, all []string, ofKind, ofAll string) {
	t.Helper()
	with := func(before, value string) string {
		if value == "" {
			return before + "}"
		}
		return before + ", " + field + ": " + value + "}"
	}
	spec := "pipeline:\n  name: p\n  defaults:\n    sh: " + with("{effect: pure", ofKind) + "\n    \"*\": " + with("{effect: once", ofAll) +
		"\n  nodes:\n    list: {kind: sh, onFail: fail, with: {values: {l: list}}}\n"
	for i, node := range all {
		spec += fmt.Sprintf("    written%d: %s\n    each%d: {kind: join, needs: [list], foreach: {in: \"nodes['list'].out.l\", as: x, key: x.value, node: %s}}\n",
			i, with("{kind: sh", node), i, with("{kind: sh", node))
	}
	res, eval := outline(t, spec)
	policies := func(n *dag.Node) string {
		b, _ := json.Marshal([]any{n.Retry, n.Timeout, n.Reserve, n.Estimate, n.Labels, n.OnFail, n.Effect})
		return string(b)
	}
	for i, node := range all {
		w, _ := res.Graph.Index(fmt.Sprint("written", i))
		e, _ := res.Graph.Index(fmt.Sprint("each", i))
		got, err := eval.Expand(res.Graph.Node(e), record{"list": {Status: "completed", Out: values("l", `["one"]`)}})
		if err != nil {
			t.Fatal(err)
		}
		if g, w := policies(&got[0]), policies(res.Graph.Node(w)); g != w {
			t.Errorf("%s: %q, of its kind %q, of all %q:\n expanded %s\n  written %s", field, node, ofKind, ofAll, g, w)
		}
	}
}

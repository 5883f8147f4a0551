package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// planSettings are of a kind of node for plans: they say what it touches.
type planSettings struct {
	nothing
	traits nodes.Traits
}

func (s planSettings) Traits() nodes.Traits { return s.traits }

const planSchema = `package spec

#%s: {
	cmd?: string
	n?: int & >=0 & <=100 | error("want an int from 0 to 100")
	list?: [...string]
	flag?: bool
	m?: [string]: _
	files?: [...#Path]
	reads?: [...#Path]
	writes?: [...#Path]
	appends?: [...#Name]
	values?: [#Name]: string
	mode: *"fast" | "slow" | error("want fast or slow")
	model?: string
	maxOutput?: int
}
`

func newPlanKind(name string) nodes.Kind {
	schema := fmt.Sprintf(planSchema, strings.ToUpper(name[:1])+name[1:])
	return nodes.Kind{Name: name, Schema: schema, Parse: func(with json.RawMessage) (nodes.Settings, error) {
		t, err := planTraits(name, with)
		return planSettings{traits: t}, err
	}}
}

func planTraits(name string, with json.RawMessage) (nodes.Traits, error) {
	var w struct {
		Cmd                           string
		N                             int
		List                          []string
		Flag                          bool
		M                             map[string]any
		Files, Reads, Writes, Appends []string
		Values                        map[string]string
		Mode, Model                   string
		MaxOutput                     int64
	}
	d := json.NewDecoder(bytes.NewReader(with))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return nodes.Traits{}, err
	}
	t := nodes.Traits{Effect: "idempotent", Files: w.Files, Reads: w.Reads, Writes: w.Writes, Appends: w.Appends, Outputs: w.Values}
	if name == "ask" {
		t.Paid = w.Model != ""
		t.Prompt = &nodes.PromptEstimate{Model: w.Model, Chars: 401, Files: w.Files, MaxOutput: w.MaxOutput}
		t.Notes = []string{"files: " + strings.Join(w.Files, ", ")}
	}
	if w.Cmd == "bad" {
		t.Problems = []nodes.Problem{{Path: "cmd", Text: "bad is no command"}}
	}
	return t, nil
}

var planKinds = nodes.NewRegistry(newPlanKind("sh"), newPlanKind("ask"))

// archive writes the files of an archive into a folder of the test.
func archive(t testing.TB, a *txtar.Archive) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, "want") {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compileIn compiles a spec of a folder. Overrides are path=value or @file.
func compileIn(dir, spec string, set ...string) (*Result, error) {
	o := Options{Path: filepath.Join(dir, spec), Kinds: planKinds}
	for _, s := range set {
		if f, ok := strings.CutPrefix(s, "@"); ok {
			o.Values = append(o.Values, filepath.Join(dir, f))
		} else {
			o.Set = append(o.Set, s)
		}
	}
	return Compile(o)
}

// TestPlans compiles every archive in testdata/plan: each spec gives the plan or the mistakes
// that its want file holds; specs that share a want file give the same plan. The first line of the
// comment may name overrides: "set: a.b=1 @values.yaml".
//
// D-1, B-7, R-2.
func TestPlans(t *testing.T) {
	files, _ := filepath.Glob("testdata/plan/*.txtar")
	if len(files) == 0 {
		t.Fatal("no archives")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { testPlan(t, file) })
	}
}

func testPlan(t *testing.T, file string) {
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := archive(t, a)
	var set []string
	if line, ok := strings.CutPrefix(string(a.Comment), "set: "); ok {
		line, _, _ = strings.Cut(line, "\n")
		set = strings.Fields(line)
	}
	changed := map[*txtar.File]bool{}
	for _, f := range a.Files {
		if !strings.HasPrefix(f.Name, "spec") {
			continue
		}
		got := outcome(compileIn(dir, f.Name, set...))
		got = strings.ReplaceAll(got, dir+string(filepath.Separator), "")
		want := member(a, "want."+strings.TrimPrefix(filepath.Ext(f.Name), "."))
		if want == nil {
			want = member(a, "want")
		}
		switch {
		case want == nil:
			t.Fatalf("no want file for %s", f.Name)
		case got == string(want.Data):
		case *update && !changed[want]:
			want.Data, changed[want] = []byte(got), true
		default:
			t.Errorf("%s:\n--- got\n%s--- want\n%s", f.Name, got, want.Data)
		}
	}
	if len(changed) > 0 {
		if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func member(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

// outcome prints a plan without what the schema brings along, or the mistakes.
func outcome(res *Result, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	p := *res.Plan
	p.Categories, p.Prices, p.Nodes = nil, nil, nil
	var b strings.Builder
	head, _ := json.MarshalIndent(p, "", "  ")
	fmt.Fprintf(&b, "%s\n", head)
	for i, n := range res.Plan.Nodes {
		if r, _ := json.Marshal(n.Retry); string(r) == `{"attempts":3,"base":"5s","factor":2,"cap":"2m0s","jitter":0.2}` {
			n.Retry = dag.Retry{}
		}
		if n.Timeout == (dag.Timeout{Grace: defaultGrace}) {
			n.Timeout = dag.Timeout{}
		}
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(n)
		for _, note := range res.Notes[i] {
			fmt.Fprintf(&b, "\t%s\n", note)
		}
	}
	for _, w := range res.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w.Error())
	}
	return b.String()
}

// diagnostics asserts that an error is a list of mistakes and returns its lines.
func diagnostics(t testing.TB, err error) []string {
	t.Helper()
	var ds tree.Diagnostics
	if !errors.As(err, &ds) {
		t.Fatalf("got %v, want diagnostics", err)
	}
	var out []string
	for _, d := range ds {
		out = append(out, d.Error())
	}
	return out
}

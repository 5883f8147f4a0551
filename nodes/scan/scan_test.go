package scan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// place writes files below a folder; "" makes a folder of that name.
func place(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// task is one attempt in a folder, with a parameter.
func task(t testing.TB, dir string, with any) *nodes.Task {
	t.Helper()
	k, _ := nodetest.New(t, "scan", with)
	k.SpecDir, k.Now = dir, now
	k.Formulas = func(x *nodes.Formulas) ([]nodes.Formula, error) {
		l, err := expr.NewLang([]dag.Param{{Name: "p", Type: "int", Value: json.RawMessage("3")}})
		if err != nil {
			t.Fatal(err)
		}
		list, problems := l.Formulas(x)
		if len(problems) > 0 {
			t.Fatalf("%+v", problems)
		}
		return list, nil
	}
	return k
}

// scan runs one and returns its values as they are recorded, and its warnings.
func scan(t testing.TB, k *nodes.Task) (map[string]any, []string) {
	t.Helper()
	res, err := Kind.Run(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(res.Values)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out, res.Warnings
}

// field is a field of every picked item, in order.
func field(out map[string]any, name string) (list []any) {
	for _, it := range out["items"].([]any) {
		list = append(list, it.(map[string]any)[name])
	}
	return list
}

type object = map[string]any

// M-1, M-3: items by pattern, their values, what is owed, and the order: highest first, then by path.
func TestPicks(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{
		"a/.meta/meta.json": `{"rank": 1, "weight": 2.5}`, "a/one.md": "1", "a/deep/two.md": "2", "a/x.txt": "no",
		"b/.meta/meta.json": `{"rank": 2}`, "b/one.md": "1",
		"c/.meta/meta.json": `{"rank": 2}`, "c/one.md": "1",
		"d/.meta/meta.json":    `{"rank": 0}`,
		"e/.meta/meta.json":    `{"rank": "x"}`,
		"f/.meta/meta.json":    `{`,
		".git/.meta/meta.json": `{"rank": 9}`, "run/_orchestrator/x": "", "run/.meta/meta.json": `{"rank": 9}`,
	})
	out, warnings := scan(t, task(t, dir, object{
		"items": "**/.meta/meta.json", "parse": "json", "content": []string{"../**/*.md"},
		"vars": object{
			"rank": "e.meta.?rank.orValue(7)", "score": "double(e.rank) * e.weight * double(e.files)", "weight": "double(e.meta.?weight.orValue(1)) + double(params.p)",
			"age": "(now - timestamp('2030-01-02T03:04:00Z')).getSeconds()",
		},
		"if": "e.rank > 0", "order": []string{"int(e.rank)", "e.score"}, "take": 3, "count": "int(e.rank)",
	}))
	if got := field(out, "path"); !reflect.DeepEqual(got, []any{"f/.meta/meta.json", "b/.meta/meta.json", "c/.meta/meta.json"}) {
		t.Errorf("%v", got)
	}
	if got := []any{out["total"], out["owed"], out["problems"], out["counts"], out["now"]}; !reflect.DeepEqual(got,
		[]any{6.0, 4.0, 2.0, object{"0": 1.0, "1": 1.0, "2": 2.0, "7": 1.0}, "2030-01-02T03:04:05Z"}) {
		t.Errorf("%v", got)
	}
	b := out["items"].([]any)[1].(object)
	want := object{
		"path": "b/.meta/meta.json", "dir": "b/.meta", "key": "b-.meta-meta.json-2f2ff2b2", "meta": object{"rank": 2.0},
		"own":    "7e2cb0ca4a40cf4de2a8dcbc0f8ed2e2e5ac2ecdbe1b9e96a7da3c1c9d4ff8ff",
		"digest": "", "files": 1.0, "paths": []any{"b/one.md"}, "problem": "", "rank": 2.0, "weight": 4.0, "score": 8.0, "age": 5.0,
	}
	for _, name := range []string{"own", "digest", "key", "modified"} { // of the machine, or checked below
		want[name] = b[name]
	}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("got  %v\nwant %v", b, want)
	}
	if len(b["own"].(string)) != 64 || !strings.HasPrefix(b["key"].(string), "b-.meta-meta.json-") {
		t.Errorf("%v", b)
	}
	text := strings.Join(warnings, "\n")
	if !strings.Contains(text, "e/.meta/meta.json: vars.score: ") || !strings.Contains(text, "f/.meta/meta.json: cannot be parsed: ") || len(warnings) != 2 {
		t.Errorf("%s", text)
	}
}

// A digest changes with names and contents of what belongs to an item, and with nothing else; own with the file itself.
func TestDigests(t *testing.T) {
	dir := t.TempDir()
	with := object{"items": "*/meta.json", "content": []string{"*.md", "sub/*"}}
	see := func() (own, digest string) {
		out, _ := scan(t, task(t, dir, with))
		it := out["items"].([]any)[0].(object)
		return it["own"].(string), it["digest"].(string)
	}
	place(t, dir, map[string]string{"a/meta.json": "{}", "a/x.md": "x", "a/sub/y": "y"})
	own, digest := see()
	for i, step := range []struct {
		do          func()
		own, digest bool // change
	}{
		{func() { place(t, dir, map[string]string{"a/x.txt": "no part of it", "b/x.md": ""}) }, false, false},
		{func() { place(t, dir, map[string]string{"a/x.md": "z"}) }, false, true},
		{func() { _ = os.Rename(filepath.Join(dir, "a/x.md"), filepath.Join(dir, "a/y.md")) }, false, true},
		{func() { place(t, dir, map[string]string{"a/meta.json": "{ }"}) }, true, false},
		{func() { _ = os.Remove(filepath.Join(dir, "a/sub/y")) }, false, true},
		{func() { _ = os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "moved")) }, false, false},
	} {
		step.do()
		own2, digest2 := see()
		if own2 != own != step.own || digest2 != digest != step.digest {
			t.Errorf("step %d: own changed %v, digest %v", i+1, own2 != own, digest2 != digest)
		}
		own, digest = own2, digest2
	}
}

// A file below the folder of another item belongs to that one, unless the settings say otherwise.
func TestNestedItems(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{
		".meta/meta.json": "", "top.md": "", "a/.meta/meta.json": "", "a/x.md": "", "a/b/y.md": "", "a/c/.meta/meta.json": "", "a/c/z.md": "",
	})
	for nested, want := range map[bool][]any{
		false: {[]any{"top.md"}, []any{"a/b/y.md", "a/x.md"}, []any{"a/c/z.md"}},
		true:  {[]any{"a/b/y.md", "a/c/z.md", "a/x.md", "top.md"}, []any{"a/b/y.md", "a/c/z.md", "a/x.md"}, []any{"a/c/z.md"}},
	} {
		out, _ := scan(t, task(t, dir, object{"items": "**/.meta/meta.json", "content": []string{"../**/*.md"}, "nested": nested, "take": 9}))
		if got := field(out, "paths"); !reflect.DeepEqual(got, want) {
			t.Errorf("nested %v: %v", nested, got)
		}
	}
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{
		"a": "---\nrank: 3\ntags: [x]\n---\n# Text\n", "b": "# Text\n---\nrank: 3\n", "c": "---\nrank: 3\n", "d": "---\nrank: {\n---\n", "e": "---\r\nrank: 4\r\n---\r\n",
		"f": "", "g": "---\n---\n",
	})
	for how, want := range map[string][]any{
		"frontmatter": {object{"rank": 3.0, "tags": []any{"x"}}, object{}, object{}, "cannot be parsed", object{"rank": 4.0}, object{}, object{}},
		"none":        {nil, nil, nil, nil, nil, nil, nil},
	} {
		out, _ := scan(t, task(t, dir, object{"items": "*", "parse": how, "take": 9}))
		for i, v := range field(out, "meta") {
			problem := field(out, "problem")[i].(string)
			if text, bad := want[i].(string); bad {
				if !strings.HasPrefix(problem, text) || !reflect.DeepEqual(v, object{}) {
					t.Errorf("%s %d: %v, %s", how, i, v, problem)
				}
			} else if problem != "" || v != nil && !reflect.DeepEqual(v, want[i]) || v == nil != (want[i] == nil) {
				t.Errorf("%s %d: %v, %q", how, i, v, problem)
			}
		}
	}
	place(t, dir, map[string]string{"a": "a: 1", "b": "a: b: c", "c": "[1", "d": strings.Repeat("a", 2000), "e": "", "f": "a: &x [1]\nb: *x", "g": "null"})
	out, _ := scan(t, task(t, dir, object{"items": "*", "parse": "yaml", "maxKB": 1, "take": 9}))
	for i, want := range []string{"", "cannot be parsed: ", "cannot be parsed: ", "cannot be parsed: it is longer than 1 kB (see maxKB)", "", "", ""} {
		if got := field(out, "problem")[i].(string); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%d: %q", i, got)
		}
	}
}

// What is no file below the folder is a problem of its item, and never what is followed or waited for. (M-6)
func TestWhatIsNoFile(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	place(t, outside, map[string]string{"secret.md": "secret"})
	place(t, dir, map[string]string{"ok/m": "", "ok/a.md": "a", "in/m": "", "out/m": "", "gone/m": ""})
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("../ok/a.md", "in/x.md")
	link(filepath.Join(outside, "secret.md"), "out/x.md")
	link("nothing", "gone/x.md")
	link(outside, "folder")
	link("..", "ok/back")
	out, warnings := scan(t, task(t, dir, object{"items": "**/m", "content": []string{"**/*.md"}, "take": 9, "if": "e.digest != ''"}))
	if got := field(out, "problem"); !reflect.DeepEqual(got, []any{
		"gone/x.md: no such file or directory", "", "", "out/x.md: it is a link that leads out of its folder; put a copy in its place"}) {
		t.Errorf("%q\n%q", got, warnings)
	}
	if out["problems"] != 2.0 || out["total"] != 4.0 {
		t.Errorf("%v", out)
	}
}

func TestRoot(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	place(t, dir, map[string]string{"docs/a/m": ""})
	place(t, other, map[string]string{"a/m": ""})
	for root, want := range map[string]string{"": "docs/a/m", "docs": "docs/a/m", "./docs/": "docs/a/m", other: filepath.ToSlash(other) + "/a/m"} {
		out, _ := scan(t, task(t, dir, object{"items": "**/m", "root": root}))
		if got := field(out, "path"); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %v", root, got)
		}
	}
	for root, want := range map[string]string{"nowhere": "file_io", "../x": "config", "docs/a/m": "file_io"} {
		if _, err := (Kind).Run(t.Context(), task(t, dir, object{"items": "**/m", "root": root})); nodetest.Category(err) != want {
			t.Errorf("%q: %v", root, err)
		}
	}
	if out, _ := scan(t, task(t, t.TempDir(), object{"items": "**/m"})); out["total"] != 0.0 || len(field(out, "path")) != 0 {
		t.Errorf("%v", out)
	}
	out, _ := scan(t, task(t, dir, object{"items": "docs/a/m", "content": []string{"../../../*"}}))
	if got := field(out, "problem")[0].(string); !strings.HasPrefix(got, "../../../* leads out of ") {
		t.Error(got)
	}
}

func TestDescribe(t *testing.T) {
	for with, want := range map[string]string{
		`{"items": "**/m"}`: "",
		`{"items": "../m"}`: "items: want a pattern of files",
		`{"items": "a//m"}`: "items: want a pattern of files",
		`{"items": "a[/m"}`: "items: a [ without",
		`{"items": "m", "content": ["../../**/x", "./x"]}`: "content[1]: want a pattern of files",
		`{"items": "m", "content": ["x/../../y"]}`:         "content[0]: want a pattern of files",
		`{"items": "m", "root": "../x"}`:                   "root: want a folder beside the specification",
		`{"items": "m", "root": "${params.p}"}`:            "",
		`{"items": "m", "vars": {"path": "1"}}`:            "vars.path: every item has e.path",
	} {
		tr, err := Kind.Describe(json.RawMessage(with))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, p := range tr.Problems {
			got += p.Path + ": " + p.Text
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s", with, got)
		}
	}
}

// A name that no plan can hold as it is would be picked again and again, and never worked on: it is a problem, and no item.
func TestNamesThatNoPlanCanHold(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{"ok/m": "", "a b'\"$(x)/m": "", "${x}/m": "", "bad\xff/m": "", "line\nbreak/m": "", `back\slash/m`: ""})
	out, warnings := scan(t, task(t, dir, object{"items": "*/m", "take": 9}))
	if got := field(out, "path"); !reflect.DeepEqual(got, []any{"a b'\"$(x)/m", "ok/m"}) || out["problems"] != 4.0 || out["total"] != 2.0 {
		t.Errorf("%q, %v problems\n%q", got, out["problems"], warnings)
	}
}

// A file can be an item itself and belong to others.
func TestItemsBelongToOuterItems(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{"a/m": "1", "a/b/m": "2", "a/b/c/m": "3", "d/m": "4"})
	with := object{"items": "**/m", "content": []string{"**"}, "nested": true, "order": []string{"e.files"}, "take": 9}
	for range 2 {
		out, _ := scan(t, remembering(t, dir, filepath.Join(dir, "cache"), with))
		if got := field(out, "paths"); !reflect.DeepEqual(got, []any{[]any{"a/b/c/m", "a/b/m"}, []any{"a/b/c/m"}, []any{}, []any{}}) {
			t.Errorf("%v", got)
		}
	}
}

// M-1, M-3: the metadata of an item may stand beside it, and need not be there yet: then e.own is what publish expects
// of a file that must not be there.
func TestMetadataBesideTheItem(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{"a/x.md": "1", "a/y.md": "1", "a/y.md.json": "{", "b/x.md": "2", "a/.meta/y.md.json": `{"of": "nothing"}`})
	with := object{
		"root": dir, "items": "**/*.md", "metadata": ".meta/*.json", "parse": "json", "take": 9, "vars": object{"of": "e.meta.?of.orValue('')"}, "if": "e.of != e.digest",
	}
	picked := func(want ...any) object {
		t.Helper()
		out, warnings := scan(t, task(t, dir, with))
		if got := field(out, "path"); !reflect.DeepEqual(got, want) || len(warnings) > 0 {
			t.Fatalf("%v %q, want %v", got, warnings, want)
		}
		return out
	}
	x, y, b := filepath.Join(dir, "a/x.md"), filepath.Join(dir, "a/y.md"), filepath.Join(dir, "b/x.md")
	items := picked(x, y, b)["items"].([]any)
	first, second := items[0].(object), items[1].(object)
	if first["metadata"] != filepath.Join(dir, "a/.meta/x.md.json") || first["own"] != "" || first["files"] != 1.0 || second["own"] == "" {
		t.Errorf("%v\n%v", first, second)
	}
	place(t, dir, map[string]string{"a/.meta/x.md.json": `{"of": "` + first["digest"].(string) + `"}`})
	picked(y, b)
	place(t, dir, map[string]string{"a/x.md": "3", "a/.meta/y.md.json": "{"})
	out, warnings := scan(t, task(t, dir, with))
	if got := field(out, "problem"); len(got) != 3 || got[1] == "" || len(warnings) != 1 {
		t.Errorf("%v %q", got, warnings)
	}
	with["metadata"] = "../../*"
	if out, warnings := scan(t, task(t, dir, with)); out["owed"] != 3.0 || len(warnings) != 3 || !strings.Contains(warnings[0], "leads out of the folder") {
		t.Errorf("%v %q", out, warnings)
	}
}

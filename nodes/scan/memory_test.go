package scan

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"dagrun.dev/nodes"
)

// settle has files look as if nobody had touched them for a while: stamps of inodes cannot be set
// back, so the tests move the bound.
func settle(t testing.TB, ago time.Duration) {
	t.Helper()
	was := young
	young = ago
	t.Cleanup(func() { young = was })
}

func remembering(t testing.TB, dir, cache string, with any) *nodes.Task {
	k := task(t, dir, with)
	k.Cache = cache
	return k
}

// What is remembered of files that have not changed is what they hold: after any number of edits of any kind a scan
// with a memory finds what one without finds, and opens only what has changed. (M-1)
func TestMemoryFindsTheSame(t *testing.T) {
	settle(t, -time.Hour)                               // every stamp is believed: on this file system each write makes another
	for _, beside := range []string{"", "../.meta/*"} { // where the metadata stands
		findsTheSame(t, beside)
	}
}

func findsTheSame(t *testing.T, beside string) {
	t.Helper()
	dir, cache := t.TempDir(), t.TempDir()
	with := object{
		"items": "**/.meta/m.json", "parse": "json", "content": []string{"../*.md", "../sub/**"}, "take": 5, "count": "e.size",
		"vars": object{
			"size": "size(e.meta.?text.orValue('')) % 3", "half": "double(e.size) / 2.0", "deep": "e.meta.?list.orValue([])", "mixed": "e.meta.?any.orValue(null)",
			"of": "e.digest + e.own", "bad": "e.problem != ''", "where": "e.path + string(e.size)", "age": "(now - e.modified).getSeconds() + e.size",
		},
		"if": "!e.bad || e.files > 1", "order": []string{"e.half", "e.files"},
	}
	if beside != "" {
		with["items"], with["metadata"] = "**/m.json", beside
	}
	r := rand.New(rand.NewPCG(1, 2))
	name := func() string { return filepath.Join(dir, "d"+strconv.Itoa(r.IntN(12))) }
	edits := []func(){
		func() {
			raw, _ := json.Marshal(object{"text": string(bytes.Repeat([]byte("x"), r.IntN(9))), "list": []any{r.IntN(3), 1.5, "a"},
				"any": []any{nil, true, 2.0, "s", object{"a": []any{1}}}[r.IntN(5)]})
			place(t, name(), map[string]string{".meta/m.json": string(raw)})
		},
		func() { place(t, name(), map[string]string{".meta/m.json": "{"}) },
		func() { place(t, name(), map[string]string{"in/m.json": "{}"}) },
		func() { place(t, name(), map[string]string{strconv.Itoa(r.IntN(3)) + ".md": strconv.Itoa(r.IntN(9))}) },
		func() { place(t, name(), map[string]string{"sub/" + strconv.Itoa(r.IntN(3)): strconv.Itoa(r.IntN(9))}) },
		func() { _ = os.RemoveAll(filepath.Join(name(), "sub")) },
		func() { _ = os.RemoveAll(name()) },
		func() { _ = os.Rename(name(), name()) },
		func() { _ = os.Chtimes(filepath.Join(name(), "0.md"), now, now) },
		func() { _ = os.Symlink("../d1/0.md", filepath.Join(name(), "1.md")) },
		func() { _ = os.Symlink("/etc/hostname", filepath.Join(name(), "2.md")) },
		func() { _ = os.RemoveAll(cache) },
		func() { with["root"] = []string{"", dir}[r.IntN(2)] }, // the same files under other names
		func() {
			with["order"] = []any{[]string{"e.half", "e.files"}, []string{"e.key"}, []string{"e.age", "e.where"}}[r.IntN(3)]
		},
		func() { with["if"] = []string{"!e.bad || e.files > 1", "e.age % 2 == 0"}[r.IntN(2)] },
		func() {
			with["vars"].(object)["size"] = "size(e.meta.?text.orValue('')) % " + strconv.Itoa(2+r.IntN(3))
		},
	}
	for i := range 100 {
		edits[i%3]() // something to look at
		edits[r.IntN(len(edits))]()
		edits[r.IntN(len(edits))]()
		without, k := remembering(t, dir, "", with), remembering(t, dir, cache, with)
		without.Now, k.Now = now.Add(time.Duration(i)*time.Hour), now.Add(time.Duration(i)*time.Hour)
		want, wantWarnings := scan(t, without)
		got, warnings := scan(t, k)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(warnings, wantWarnings) {
			t.Fatalf("after %d edits%s\n%v %q\nwant\n%v %q", i+1, beside, got, warnings, want, wantWarnings)
		}
	}
}

// opens runs a scan and returns the files that it had to read.
func opens(t *testing.T, dir, cache string, with any) []string {
	t.Helper()
	task := remembering(t, dir, cache, with)
	s, err := read(task.With)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.(*settings).look(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	f.keep()
	var list []string
	add := func(x *file) {
		if x.digest != "" && !x.same {
			list = append(list, x.path)
		}
	}
	for _, it := range f.items {
		add(it.file)
		for _, x := range it.content {
			add(x)
		}
	}
	return list
}

func TestUnchangedFilesAreNotOpened(t *testing.T) {
	settle(t, -time.Hour)
	dir, cache := t.TempDir(), t.TempDir()
	place(t, dir, map[string]string{"a/m": "{}", "a/x": "x", "a/y": "y", "b/m": "{}", "b/x": "x"})
	with := object{"items": "*/m", "parse": "json", "content": []string{"[xy]"}, "if": "e.digest != e.own", "take": 9}
	expect := func(what string, want ...string) {
		t.Helper()
		if got := opens(t, dir, cache, with); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %q, want %q", what, got, want)
		}
	}
	expect("at first", "a/m", "a/x", "a/y", "b/m", "b/x")
	expect("again")
	place(t, dir, map[string]string{"a/x": "z"}) // of the same size
	expect("written", "a/x")
	expect("again")
	info, err := os.Stat(filepath.Join(dir, "b/x"))
	if err != nil {
		t.Fatal(err)
	}
	place(t, dir, map[string]string{"b/x": "q"})
	if err := os.Chtimes(filepath.Join(dir, "b/x"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	expect("written, of the same size and with its time set back", "b/x")
	place(t, dir, map[string]string{"new": "q"})
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "b/x")); err != nil {
		t.Fatal(err)
	}
	expect("replaced", "b/x")

	// The file of a scan with other expressions about the same files serves as well.
	with["if"] = "e.digest != ''"
	expect("with another condition")

	// Whatever happens to what is remembered, it is not believed.
	files, err := filepath.Glob(filepath.Join(cache, "scan", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for _, damaged := range [][]byte{whole[:i], append(append(bytes.Clone(whole[:i]), whole[i]^4), whole[i+1:]...)} {
			if x, _, err := decode(damaged, ""); err == nil {
				t.Fatalf("taken: %v", x)
			}
		}
	}
	if err := os.WriteFile(files[0], whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	expect("after damage", "a/m", "a/x", "a/y", "b/m", "b/x")
	expect("again")

	settle(t, time.Hour) // all of them are too young
	expect("young files", "a/m", "a/x", "a/y", "b/m", "b/x")
	expect("again", "a/m", "a/x", "a/y", "b/m", "b/x")
}

// Nothing of a file is opened that nobody asks about.
func TestNothingIsOpenedUnasked(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, map[string]string{"a/m": "", "a/x": "", "b/m": "", "b/x": ""})
	with := object{"items": "*/m", "content": []string{"x"}, "if": "e.files > 0", "order": []string{"e.path"}}
	if got := opens(t, dir, "", with); !reflect.DeepEqual(got, []string{"b/m", "b/x"}) {
		t.Errorf("read %q, and only what is picked is recorded with its digests", got)
	}
}

func TestEntriesComeBack(t *testing.T) {
	var b []byte
	list := []any{true, false, int64(-1) << 63, int64(7), 1.5, math.Copysign(0, -1), "", "a\x00ü", []any{int64(1), "x"}, map[string]any{"a": nil}, nil, missing{}}
	for _, v := range list {
		b = appendValue(b, v)
	}
	r := reader{rest: string(b)}
	for _, v := range list {
		if got := r.value(); !reflect.DeepEqual(got, v) || r.bad {
			t.Errorf("%v: %v", v, got)
		}
	}
	if r.value(); !r.bad {
		t.Error("a value behind the last one")
	}
	files := []entry{{}, {"a", stamp{1, -2, 3, 1 << 63}, "d"}, {path: "b/c"}, {path: "b/d"}}
	records := []record{{from: 0, to: 1}, {from: 1, to: 3, meta: "m", problem: "p", values: "v"}, {from: 3, to: 4, values: "x"}}
	data := encode("q", len(records), func(i int) (record, []entry) { return records[i], files[records[i].from:records[i].to] })
	if got, of, err := decode(data, "q"); err != nil || !slices.Equal(got, records) || !slices.Equal(of, files) {
		t.Errorf("%v %v %v", got, of, err)
	}
	got, of, err := decode(data, "r") // other expressions
	if err != nil || got[1].values+got[2].values != "" || got[1].meta != "m" || !slices.Equal(of, files) {
		t.Errorf("%v %v %v", got, of, err)
	}
}

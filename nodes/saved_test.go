package nodes

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Artifacts of a saved result are text where they can be: what is masked in them then loads all the same (W-11).
func TestSavedTextIsText(t *testing.T) {
	task := &Task{Node: "a", Generation: 1, Attempt: 1, Out: t.TempDir()}
	if err := os.WriteFile(filepath.Join(task.Out, "page"), []byte("a \"key\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := SaveResult(&file, task, &Result{Writes: map[string]string{"page": "page"}}); err != nil {
		t.Fatal(err)
	}
	masked := bytes.Replace(file.Bytes(), []byte("key"), []byte("[secret]"), 1)
	out := t.TempDir()
	if _, err := LoadResult(bytes.NewReader(masked), "a", 1, 1, out); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "page")); err != nil || string(b) != "a \"[secret]\"\n" {
		t.Errorf("page %q %v", b, err)
	}
}

func TestSavedResult(t *testing.T) {
	task := &Task{Node: "a/b", Generation: 2, Attempt: 3, Out: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(task.Out, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(task.Out, "d", "x"), []byte("a\x00\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	cost := 1.25
	want := &Result{
		Values: map[string]any{"chars": int64(9007199254740993)}, Writes: map[string]string{"page": "d/x"},
		Entries: []Entry{{Accumulator: "log", Text: "t"}}, Usage: Usage{Input: 1, Output: 2}, CostUSD: &cost,
	}
	var file bytes.Buffer
	if err := SaveResult(&file, task, want); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	got, err := LoadResult(bytes.NewReader(file.Bytes()), "a/b", 2, 3, out)
	if err != nil {
		t.Fatal(err)
	}
	if got.Values["chars"] != json.Number("9007199254740993") || *got.CostUSD != cost || got.Usage != want.Usage || got.Entries[0].Text != "t" {
		t.Errorf("%+v", got)
	}
	if b, err := os.ReadFile(filepath.Join(out, got.Writes["page"])); err != nil || string(b) != "a\x00\xff" {
		t.Errorf("page %q %v", b, err)
	}
	if _, err := LoadResult(bytes.NewReader(file.Bytes()), "a/b", 2, 4, out); err == nil {
		t.Error("a result of another attempt was loaded")
	}
	for cut := range file.Len() - 1 { // the last byte is the line end
		if _, err := LoadResult(bytes.NewReader(file.Bytes()[:cut]), "a/b", 2, 3, out); err == nil {
			t.Fatalf("a file cut at byte %d was loaded", cut)
		}
	}
}

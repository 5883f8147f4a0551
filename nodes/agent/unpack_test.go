package agent

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
)

func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// P-13: a folder of files reaches the agent's private folder, one nobody made is left out where that is
// allowed, and no archive writes anywhere else.
func TestGivenArchives(t *testing.T) {
	task, h := nodetest.New(t, "agent", nil)
	h.Artifacts["pictures.zip"] = zipped(t, map[string]string{"a.png": "A", "deep/b.png": "B"})
	h.Artifacts["evil.zip"] = zipped(t, map[string]string{"../../out": "X"})
	h.Artifacts["broken.zip"] = "no archive"
	dir := filepath.Join(task.Scratch, workName)
	err := workFolder(task, &settings{Give: []givenFile{
		{Artifact: "pictures.zip", Unpack: true},
		{Artifact: "pictures.zip", Unpack: true, As: "again", Send: []string{"b.png"}}, // a folder has room for all
		{Artifact: "nobody.zip", Unpack: true, Optional: true},
	}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"pictures/a.png": "A", "pictures/deep/b.png": "B", "again/a.png": "A"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	for _, g := range []givenFile{
		{Artifact: "nobody.zip", Unpack: true},
		{Artifact: "evil.zip", Unpack: true},
		{Artifact: "broken.zip", Unpack: true},
	} {
		if err := workFolder(task, &settings{Give: []givenFile{g}}, dir); nodetest.Category(err) != "config" {
			t.Errorf("give %s: %v, want category config", g.Artifact, err)
		}
	}
	if _, err := os.Stat(filepath.Join(task.Scratch, "out")); err == nil {
		t.Error("an archive wrote outside the working folder")
	}
}

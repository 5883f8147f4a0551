package folder

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func walk(fsys fstest.MapFS) (*Manifest, error) {
	return Walk(func(dir string) ([]fs.DirEntry, error) { return fs.ReadDir(fsys, dir) },
		func(p string) (string, int64, error) {
			return "d" + string(fsys[p].Data), int64(len(fsys[p].Data)), nil
		})
}

// W-2: a folder is one content; empty folders in it count, modes do not.
func TestManifest(t *testing.T) {
	m, err := walk(fstest.MapFS{"b/c": {Data: []byte("12")}, "b.txt": {Data: []byte("1"), Mode: 0o755}, "e": {Mode: fs.ModeDir}, "<ü>": {}})
	const want = `{"format":1,"files":[{"path":"<ü>","sha256":"d"},{"path":"b.txt","sha256":"d1","size":1},` +
		`{"path":"b/c","sha256":"d12","size":2},{"path":"e/"}]}` + "\n"
	if err != nil || string(m.Encode()) != want || m.Size() != 3 {
		t.Fatalf("%v %s", err, m.Encode())
	}
	back, err := Decode(m.Encode())
	if err != nil || string(back.Encode()) != want {
		t.Fatal(err, back)
	}
	if f, ok := back.Find("b/c"); !ok || f.Size != 2 {
		t.Error("b/c is not found")
	}
	for _, name := range []string{"e/", "e", "b", "x"} {
		if _, ok := back.Find(name); ok {
			t.Errorf("%s is found", name)
		}
	}
	if m, err := walk(fstest.MapFS{}); err != nil || string(m.Encode()) != `{"format":1,"files":[]}`+"\n" {
		t.Error("empty:", err)
	}
}

func TestRefused(t *testing.T) {
	for name, mode := range map[string]fs.FileMode{"l": fs.ModeSymlink, "p": fs.ModeNamedPipe, "s": fs.ModeSocket,
		"d": fs.ModeDevice, "a\nb": 0, "a\\b": 0, "a\xff": 0} {
		_, err := walk(fstest.MapFS{"x/" + name: {Mode: mode}})
		var r *Refused
		if !errors.As(err, &r) || !strings.HasPrefix(r.Path, "x/") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, files := range []string{`{"path":"../a","sha256":"d"}`, `{"path":"/a","sha256":"d"}`, `{"path":"a"}`, `{"path":"a/","sha256":"d"}`,
		`{"path":"b","sha256":"d"},{"path":"a","sha256":"d"}`, `{"path":"a","sha256":"d"},{"path":"a","sha256":"d"}`, `{"path":"/"}`} {
		if _, err := Decode([]byte(`{"format":1,"files":[` + files + `]}`)); err == nil {
			t.Errorf("%s is taken", files)
		}
	}
	for _, text := range []string{`{"format":2,"files":[]}`, `x`} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

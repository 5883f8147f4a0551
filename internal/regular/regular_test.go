package regular_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dagrun.dev/internal/regular"
)

// W-4, e-work/28: whatever stands in the place of a file, opening it ends at once and says what it is.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("text"), 0o600))
	must(os.Mkdir(at("folder"), 0o700))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	must(os.Symlink("file", at("link")))
	must(os.Symlink("pipe", at("link-to-pipe")))
	must(os.Symlink("/etc/passwd", at("link-out")))
	l, err := net.Listen("unix", at("socket"))
	must(err)
	defer l.Close()
	root, err := os.OpenRoot(dir)
	must(err)
	defer root.Close()

	tests := []struct{ name, path, in string }{ // what Open and OpenIn say; "" = the text
		{"file", "", ""},
		{"folder", "a folder", "a folder"},
		{"pipe", "a named pipe", "a named pipe"},
		{"socket", "a socket", "a socket"},
		{"link", "a symbolic link", ""},
		{"link-to-pipe", "a symbolic link", "a named pipe"},
		{"link-out", "a symbolic link", "leads out of its folder"},
		{"none", "no such file", "no such file"},
	}
	for _, tc := range tests {
		b, err := regular.Read(at(tc.name), 100)
		check(t, tc.name, b, err, tc.path)
		b, err = regular.ReadIn(root, tc.name, 100)
		check(t, tc.name+" below a root", b, err, tc.in)
	}
	b, err := regular.Read("/dev/zero", 100)
	check(t, "device", b, err, "a device")
	if _, err := regular.Read(at("none"), 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := regular.Read(at("file"), 3); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("a file beyond the bound: %v", err)
	}
}

func check(t *testing.T, name string, b []byte, err error, want string) {
	t.Helper()
	switch {
	case want == "" && (err != nil || string(b) != "text"):
		t.Errorf("%s: %q, %v", name, b, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v, want one that says %q", name, err, want)
	}
}

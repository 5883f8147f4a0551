package executor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type closing struct{ bytes.Buffer }

func (*closing) Close() error { return nil }

// A secret is masked wherever its bytes are split between writes (B-14).
func TestMaskAcrossWrites(t *testing.T) {
	const secret = "s3cr3t-t0ken"
	var m mask
	m.add(secret)
	text := "a " + secret + " b " + secret + secret[:5]
	for cut := 0; cut <= len(text); cut++ {
		var out closing
		w := m.writer(&out)
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := "a [secret] b [secret]" + secret[:5]; out.String() != want {
			t.Fatalf("cut at %d: %q, want %q", cut, out.String(), want)
		}
	}
}

// A secret is masked in the forms that it takes inside other formats; one too short to be told
// from ordinary text is not.
func TestMaskForms(t *testing.T) {
	var m mask
	m.add(`pa"ss word`)
	m.add("abc")
	for _, s := range []string{`pa"ss word`, `{"k":"pa\"ss word"}`, "?k=pa%22ss+word", "cGEic3Mgd29yZA=="} {
		if got := m.text(s); strings.Contains(got, "ss") || !strings.Contains(got, masked) && !strings.Contains(got, "[secret]") {
			t.Errorf("%s stays %s", s, got)
		}
	}
	if got := m.text("abcdef"); got != "abcdef" {
		t.Errorf("abcdef became %s", got)
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x pa\"ss word y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.file(path); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "x [secret] y" {
		t.Errorf("file holds %q", got)
	}
}

package statedir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"dagrun.dev/dag/machine"
)

func temp(t *testing.T) *Dir {
	t.Helper()
	d, err := Open(filepath.Join(t.TempDir(), "not", "there"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestHistoryKeepsTheNewest(t *testing.T) {
	d := temp(t)
	if h, err := d.History("demo"); err != nil || len(h) != 0 {
		t.Fatal(h, err)
	}
	for i := range Kept + 3 {
		if err := d.AddHistory("demo", map[string]Sample{"a/b": {Seconds: float64(i), USD: 1500000, Tokens: 7}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.AddHistory("other", map[string]Sample{"a/b": {Seconds: 99}}); err != nil {
		t.Fatal(err)
	}
	h, err := d.History("demo")
	if err != nil || len(h["a/b"]) != Kept || h["a/b"][0] != (Sample{Kept + 2, 1500000, 7}) || h["a/b"][Kept-1].Seconds != 3 {
		t.Fatal(h, err)
	}
}

// What is zero is left out of the file, and is where it was when it is read again.
func TestHistoryKeepsSamplesTogether(t *testing.T) {
	d := temp(t)
	var want []Sample
	for i, s := range []Sample{{Seconds: 1}, {Seconds: 0, USD: 5}, {}, {Seconds: 2, Tokens: 9}, {USD: 7, Tokens: 1}, {}, {}, {Seconds: 3}, {USD: 1}} {
		if err := d.AddHistory("demo", map[string]Sample{"a": s}); err != nil {
			t.Fatal(err)
		}
		want = append([]Sample{s}, want...)[:min(i+1, Kept)]
		if h, err := d.History("demo"); err != nil || !slices.Equal(h["a"], want) {
			t.Fatalf("%v %v, want %v", h, err, want)
		}
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	d := temp(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				if err := d.AddHistory("demo", map[string]Sample{fmt.Sprintf("n%d.%d", i, j): {Seconds: 1}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if h, err := d.History("demo"); err != nil || len(h) != 40 {
		t.Fatal(len(h), err)
	}
}

// B-6: a breaker's state outlives the run; an older state never replaces a newer one.
func TestBreakerStateIsKept(t *testing.T) {
	d := temp(t)
	key := "api https://example.com/v1"
	if _, ok, err := d.Breaker(key); ok || err != nil {
		t.Fatal(ok, err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	open := Breaker{State: "open", Until: at.Add(time.Hour), Counts: machine.Counts{Failures: 3}, Updated: at}
	for _, b := range []Breaker{open, {State: "closed", Updated: at.Add(-time.Second)}} {
		if err := d.SetBreaker(key, b); err != nil {
			t.Fatal(err)
		}
	}
	if b, ok, err := d.Breaker(key); !ok || err != nil || b != open {
		t.Fatal(b, ok, err)
	}
	if _, ok, _ := d.Breaker(key + "/"); ok {
		t.Fatal("found under another key")
	}
}

func TestUnreadableFilesAreEmptyOnes(t *testing.T) {
	d := temp(t)
	if err := d.AddHistory("demo", map[string]Sample{"a": {Seconds: 1}}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", `{"key":"other","value":{}}`, `{"key":"demo","value":3}`,
		`{"key":"demo","value":null}`, `{"key":"demo","value":{"a":[]}}`, `{"key":"demo","value":{"a":[[],[],[],[1]]}}`} {
		if err := os.WriteFile(filepath.Join(d.Path(), "history", fileName("demo")), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if h, err := d.History("demo"); err != nil || len(h["a"]) != 0 {
			t.Errorf("%q: %v %v", text, h, err)
		}
		if err := d.AddHistory("demo", map[string]Sample{"a": {Seconds: 2}}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhereItLies(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	for env, want := range map[string]string{"": "/home/u/.local/state/dagrun", "relative": "/home/u/.local/state/dagrun", "/x/state": "/x/state/dagrun"} {
		t.Setenv("XDG_STATE_HOME", env)
		if d, err := Open(""); err != nil || d.Path() != want {
			t.Errorf("%q: %v %v", env, d, err)
		}
	}
}

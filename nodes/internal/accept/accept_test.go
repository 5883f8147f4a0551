package accept

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"dagrun.dev/nodes"
)

// stepFunc is a step made of a function.
type stepFunc func(*State) error

func (f stepFunc) Apply(s *State) error { return f(s) }

// C-8, C-9: a failed step does not stop the others; the first failure is the answer's, the others are told.
func TestRunAppliesAllSteps(t *testing.T) {
	s := NewState(nil, "x")
	err := Run([]Step{
		stepFunc(func(s *State) error { s.Warn("one"); return nodes.Fail("truncated", "cut") }),
		stepFunc(func(s *State) error { s.Warn("two"); return errors.New("odd") }),
		stepFunc(func(s *State) error { s.Warn("three"); return nil }),
	}, s)
	var e *nodes.Error
	if !errors.As(err, &e) || e.Category != "truncated" || e.Diagnostics != "also: accept: odd" {
		t.Errorf("%+v", e)
	}
	if !reflect.DeepEqual(s.Warnings, []string{"one", "two", "three"}) {
		t.Errorf("warnings %q", s.Warnings)
	}
	if err := Run([]Step{stepFunc(func(*State) error { return errors.New("odd") })}, s); !errors.As(err, &e) || e.Category != "unknown" {
		t.Errorf("a foreign error: %v", err)
	}
	if err := Run(nil, s); err != nil {
		t.Errorf("no steps: %v", err)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""}, {" a\n b ", "a b"}, {"abcd", "abcd"}, {"abcde", "abcd…"}, {"éééé", "éééé"}, {"ééééé", "éééé…"},
		{strings.Repeat("é", 1000), "éééé…"}, {"a" + strings.Repeat(" ", 1000) + "b", "a…"}, {"\xff\xff\xff\xff\xff", "\ufffd\ufffd\ufffd\ufffd…"},
	} {
		if got := Clip(4, tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

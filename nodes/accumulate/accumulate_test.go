package accumulate

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

func apply(t testing.TB, with string, s *accept.State) error {
	t.Helper()
	step, err := accept.ParseStep(Kind, []byte(with))
	if err != nil {
		t.Fatal(err)
	}
	return step.Apply(s)
}

// C-9: entries carry metadata, are bounded in size, and a missing block is a warning.
func TestEntries(t *testing.T) {
	tests := []struct {
		name, with string
		texts      map[string]string
		want       []nodes.Entry
		warnings   []string
	}{
		{"with metadata", `{"text":"n","into":"layer","meta":{"title":"Pass 3","step":3,"empty":""}}`, map[string]string{"n": "\r\n a\r\nb \n"},
			[]nodes.Entry{{Accumulator: "layer", Text: "a\nb", Meta: map[string]string{"title": "Pass 3", "step": "3"}}}, nil},
		{"whole answer", `{"into":"layer"}`, nil, []nodes.Entry{{Accumulator: "layer", Text: "the answer"}}, nil},
		{"empty block", `{"text":"n","into":"layer"}`, map[string]string{"n": " \n"}, nil, nil},
		{"missing", `{"text":"n","into":"layer"}`, nil, nil, []string{"layer: no entry: the answer has no n"}},
		{"missing, ignored", `{"text":"n","into":"layer","missing":"ignore"}`, nil, nil, nil},
		{"cut at a line's end", `{"text":"n","into":"layer","maxChars":14}`, map[string]string{"n": "éééé1\néé2\nrest of it"},
			[]nodes.Entry{{Accumulator: "layer", Text: "éééé1\néé2\n[…]"}}, []string{"layer: an entry of 20 characters was cut to 13"}},
		{"known lines left out", `{"text":"n","into":"layer","unique":true}`, map[string]string{"n": "kept line 2\nnew"},
			[]nodes.Entry{{Accumulator: "layer", Text: "new"}}, nil},
		{"nothing new", `{"text":"n","into":"layer","unique":true}`, map[string]string{"n": " kept line 1 "}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := accept.NewState(nil, "the answer\n")
			s.Earlier = func(string) ([]nodes.Entry, error) { return []nodes.Entry{{Text: "kept line 1\nkept line 2"}}, nil }
			for name, text := range tt.texts {
				s.Texts[name] = text
			}
			if err := apply(t, tt.with, s); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(s.Entries, tt.want) || !reflect.DeepEqual(s.Warnings, tt.warnings) {
				t.Errorf("entries %+v, want %+v\nwarnings %q, want %q", s.Entries, tt.want, s.Warnings, tt.warnings)
			}
		})
	}
}

func TestMissingMayFail(t *testing.T) {
	err := apply(t, `{"text":"n","into":"layer","missing":"fail"}`, accept.NewState(nil, "x"))
	var e *nodes.Error
	if !errors.As(err, &e) || e.Category != "sections_missing" {
		t.Errorf("got %v", err)
	}
}

func TestDescribe(t *testing.T) {
	tr, err := Kind.Describe([]byte(`{"into":"layer","unique":true,"from":{"file":"a.md"}}`))
	want := nodes.Traits{Effect: "pure", Appends: []string{"layer"}, Reads: []string{"layer"}, Files: []string{"a.md"}}
	if err != nil || !reflect.DeepEqual(tr, want) {
		t.Errorf("%+v %v", tr, err)
	}
	if step, err := accept.ParseStep(Kind, []byte(`{"into":"layer","from":{"text":"x"}}`)); err != nil || len(accept.DescribeStep(step).Problems) != 1 {
		t.Errorf("%+v %v", step, err)
	}
}

func TestRunAlone(t *testing.T) {
	w := &nodetest.Host{Files: map[string]string{"a.md": "text\n"}}
	res, err := Kind.Run(context.Background(), w.Task(t, "accumulate", `{"into":"layer","from":{"file":"a.md"},"meta":{"title":"T"}}`))
	if err != nil || !reflect.DeepEqual(res.Entries, []nodes.Entry{{Accumulator: "layer", Text: "text", Meta: map[string]string{"title": "T"}}}) {
		t.Errorf("%+v %v", res, err)
	}
}

func FuzzEntry(f *testing.F) {
	f.Add("a\nb", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 1 || most > 1000 {
			return
		}
		s := accept.NewState(nil, text)
		if err := (&settings{Into: "x", MaxChars: most}).Apply(s); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Entries {
			if utf8.RuneCountInString(e.Text) > most || strings.TrimSpace(e.Text) == "" {
				t.Fatalf("entry %q", e.Text)
			}
		}
	})
}

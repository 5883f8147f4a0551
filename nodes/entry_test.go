package nodes_test

import (
	"testing"

	"dagrun.dev/nodes"
)

// C-9: entries carry their metadata.
func TestEntryHeadingHasOneOrder(t *testing.T) {
	tests := []struct {
		name  string
		entry nodes.Entry
		want  string
	}{
		{"no metadata", nodes.Entry{Text: "a"}, "a"},
		{"title first, others by name", nodes.Entry{Text: "a", Meta: map[string]string{"z": "1", "title": "T", "b": "2"}}, "### T — b: 2 · z: 1\n\na"},
		{"no title", nodes.Entry{Text: "a", Meta: map[string]string{"part": "x"}}, "### part: x\n\na"},
		{"line ends", nodes.Entry{Meta: map[string]string{"title": "a\r\n# b"}}, "### a # b"},
	}
	for _, tt := range tests {
		if got := tt.entry.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

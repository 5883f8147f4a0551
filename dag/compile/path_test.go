package compile

import (
	"strings"
	"testing"

	"dagrun.dev/internal/tree"
)

// A path that names the folder itself is called that, however it is written.
func TestLocalPathOfTheFolder(t *testing.T) {
	for _, s := range []string{".", "./", "a/.."} {
		b := &builder{}
		if b.localPath(&tree.Value{Kind: tree.String, Str: s}, "x") || !strings.Contains(b.mistakes.Error(), "the folder itself") {
			t.Errorf("%q: %v", s, b.mistakes)
		}
	}
}

package dag

import (
	"os"
	"regexp"
	"testing"
)

// A name that is not in ownNames is one under which a node may write.
func TestOwnKnowsEveryName(t *testing.T) {
	source, err := os.ReadFile("own.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t(Own\w+) += "(.+?)"`).FindAllSubmatch(source, -1)
	if len(names) < 20 {
		t.Fatalf("only %d names found", len(names))
	}
	for _, m := range names {
		if !Own(string(m[2]) + "/x") {
			t.Errorf("%s is not in ownNames", m[1])
		}
	}
}

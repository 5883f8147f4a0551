package cli

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var snake = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// free are the members whose names are not this program's: those of a specification, of its labels and
// categories, and of what a kind says of its work.
var free = map[string]bool{"budget": true, "params": true, "labels": true, "fields": true, "categories": true, "unrecovered_categories": true, "payload": true}

// json [lines | specification] wants the last stdout to be one JSON value (one on each line), with names in
// snake_case unless they are those of a specification.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	form := strings.Join(args, " ")
	if neg || form != "" && form != "lines" && form != "specification" {
		ts.Fatalf("usage: json [lines | specification]")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	n := 0
	for ; ; n++ {
		var v any
		err := dec.Decode(&v)
		if err == io.EOF {
			break
		}
		ts.Check(err)
		if form != "specification" {
			checkNames(ts, v)
		}
	}
	if n == 0 || n > 1 && form != "lines" {
		ts.Fatalf("%d JSON values on stdout", n)
	}
}

func checkNames(ts *testscript.TestScript, v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			checkNames(ts, x)
		}
	case map[string]any:
		for name, x := range v {
			if !snake.MatchString(name) {
				ts.Fatalf("a member is named %q", name)
			}
			if !free[name] {
				checkNames(ts, x)
			}
		}
	}
}

package cli

import (
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var snake = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// free are the members whose names are not this program's: those of a specification, of its labels and
// categories, and of what a kind says of its work.
var free = map[string]bool{"budget": true, "params": true, "labels": true, "fields": true, "categories": true, "unrecovered_categories": true, "payload": true, "with": true, "values": true}

// json [lines | specification] [KIND] wants the last stdout to be one JSON object (one on each line) of that kind, or
// of any that is known, with names in snake_case unless they are those of a specification.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	form := ""
	if len(args) > 0 && (args[0] == "lines" || args[0] == "specification") {
		form, args = args[0], args[1:]
	}
	known := args
	if neg || len(args) > 1 {
		ts.Fatalf("usage: json [lines | specification] [KIND]")
	}
	if len(args) == 0 {
		for _, e := range envelopes {
			known = append(known, e.kind)
		}
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
		object, _ := v.(map[string]any)
		if kind, _ := object["kind"].(string); !slices.Contains(known, kind) {
			ts.Fatalf("the kind is %q, want one of %q", kind, known)
		}
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

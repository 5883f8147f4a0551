package compile

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"dagrun.dev/internal/tree"
)

const givenSpec = `
-- spec.cue --
package p

import "strings"

_limits: {
	floor: {type: "number", default: 0.2}
	names: {type: "list", default: ["a", "b"]}
	turbo: {type: "bool", default: *false | bool}
	default: default: {type: "number", default: 2}
}

_word: string & strings.MaxRunes(5)

pipeline: {
	name: "given"
	params: {
		limits: _limits
		word: {type: "string", default: _word & "plain"}
		default: {type: "number", default: 1}
	}
	nodes: {
		"\(pipeline.params.word.default)": {kind: "sh", with: cmd: "floor \(_limits.floor.default) ${params.limits.floor}"}
		more: {kind: "sh", with: cmd: "\(pipeline.params.default.default) \(_limits.default.default.default)"}
		for n in _limits.names.default {
			"item-\(n)": {kind: "sh", with: cmd: n}
		}
		if _limits.turbo.default {
			turbo: {kind: "sh", with: cmd: "t"}
		}
	}
}
`

// TestGivenParametersReachCUE: a parameter set on the command line also takes the place of its
// default where the specification refers to it in CUE (DESIGN 13.16).
func TestGivenParametersReachCUE(t *testing.T) {
	dir := archive(t, txtar.Parse([]byte(givenSpec)))
	values := filepath.Join(dir, "values.yaml")
	must(t, os.WriteFile(values, []byte("limits: {turbo: true}\n"), 0o600))
	for _, c := range []struct {
		name   string
		set    []string
		values []string
		nodes  []string
		cmd    string // of the first node
		more   string // command of the node more
	}{
		{name: "defaults", nodes: []string{"plain", "item-a", "item-b", "more"}, cmd: `floor 0.2 0.2`},
		{name: "number", set: []string{"limits.floor=0.5"}, nodes: []string{"plain", "item-a", "item-b", "more"}, cmd: `floor 0.5 0.5`},
		{name: "list", set: []string{`limits.names=["x"]`}, nodes: []string{"plain", "item-x", "more"}, cmd: `floor 0.2 0.2`},
		{name: "string", set: []string{"word=other"}, nodes: []string{"other", "item-a", "item-b", "more"}, cmd: `floor 0.2 0.2`},
		{name: "values", values: []string{values}, nodes: []string{"plain", "item-a", "item-b", "turbo", "more"}, cmd: `floor 0.2 0.2`},
		{name: "named as a field", set: []string{"default=7", "limits.default.default=8"},
			nodes: []string{"plain", "item-a", "item-b", "more"}, cmd: `floor 0.2 0.2`, more: "7 8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := Compile(Options{Path: filepath.Join(dir, "spec.cue"), Set: c.set, Values: c.values, Kinds: planKinds})
			if err != nil {
				t.Fatal(err)
			}
			byID := map[string]string{}
			for _, n := range res.Plan.Nodes {
				byID[n.ID] = string(n.With)
			}
			if len(byID) != len(c.nodes) {
				t.Errorf("nodes %v, want %v", byID, c.nodes)
			}
			for _, id := range c.nodes {
				if _, ok := byID[id]; !ok {
					t.Errorf("no node %s in %v", id, byID)
				}
			}
			if want := `{"cmd":"` + c.cmd + `","mode":"fast"}`; byID[c.nodes[0]] != want {
				t.Errorf("with %s, want %s", byID[c.nodes[0]], want)
			}
			if want := `{"cmd":"` + cmp.Or(c.more, "1 2") + `","mode":"fast"}`; byID["more"] != want {
				t.Errorf("with %s, want %s", byID["more"], want)
			}
		})
	}

	// What the specification demands of a value holds for the given one.
	_, err := Compile(Options{Path: filepath.Join(dir, "spec.cue"), Set: []string{"word=muchtoolong"}, Kinds: planKinds})
	ds, ok := err.(tree.Diagnostics)
	if !ok || len(ds) != 1 || !strings.Contains(ds[0].Error(), "spec.cue:18:43: params.word.default: ") {
		t.Fatalf("a value that breaks a bound of the specification: %v", err)
	}
}

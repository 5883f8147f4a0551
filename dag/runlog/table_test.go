package runlog

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Whoever adds a type of event says what the logs make of it.
func TestEveryTypeOfEventIsInTheTable(t *testing.T) {
	for _, typ := range machine.Types() {
		if logged := table[typ] != nil; logged == slices.Contains(unlogged, typ) {
			t.Errorf("%s: give it a row in table, or name it in unlogged", typ)
		}
	}
}

// Verify compares the lines of older runs with what this table makes of their events, as long as both have one format.
func TestChangedLinesRaiseTheFormat(t *testing.T) {
	payloads, err := os.ReadFile("../machine/testdata/payloads/v1.txt") // lines are only added to it
	if err != nil {
		t.Fatal(err)
	}
	n := &dag.Node{ID: "Node", Kind: "agent", Title: "Title", Short: "Short", Labels: map[string]string{"label": "Label"}, Paid: true,
		Appends: []string{"Appends"}, Call: &dag.Call{Model: "Model"}, Show: &dag.Show{As: "As", Values: []string{"n"}}}
	var got bytes.Buffer
	fmt.Fprintf(&got, "format %d\n", logFormat)
	seq := int64(0)
	for text := range strings.Lines(string(payloads)) {
		typ, payload, _ := strings.Cut(strings.TrimSpace(text), " ")
		body, err := machine.DecodePayload(machine.Type(typ), []byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		seq++
		en := entry{e: machine.New(time.Unix(0, 0), body), node: n, plan: &dag.Plan{}, nodes: 3, began: time.Unix(-3, 0), tries: 3,
			pending: "Pending", why: "Why", spent: 1234567, standing: "Standing"}
		en.e.Seq = seq
		en.lines(func(log int, line []byte) { fmt.Fprintf(&got, "%s: %s", Names[log], line) })
	}
	before, err := os.ReadFile("testdata/lines.txt")
	if err != nil && !*update {
		t.Fatal(err)
	}
	format, _, _ := strings.Cut(got.String(), "\n")
	if strings.HasPrefix(string(before), format+"\n") && !bytes.HasPrefix(got.Bytes(), before) {
		t.Fatal("what the logs say of recorded events has changed: raise logFormat in files.go, then go test ./dag/runlog -update " +
			"(a new payload goes to the end of v1.txt and raises nothing)")
	}
	golden(t, "lines.txt", got.Bytes())
}

package expr

import (
	_ "embed"
	"strings"
	"sync"
)

// A Function is a row of the reference of the language: an operator, a function or a loop.
type Function struct {
	Group   string
	Use     string // how it is written
	Gives   string // what it gives, in a sentence
	Example string // an expression that is true
}

//go:embed reference.txt
var reference string

// Functions returns the reference of the language, in the order in which it is read. A test holds it to what there is
// (every function and loop of baseEnv stands in it) and to what is true (every example).
var Functions = sync.OnceValue(func() (list []Function) {
	group := ""
	for line := range strings.Lines(reference) {
		line = strings.TrimSuffix(line, "\n")
		heading, isGroup := strings.CutPrefix(line, "# ")
		text, below := strings.CutPrefix(line, "\t")
		last := len(list) - 1
		switch {
		case isGroup:
			group = heading
		case below && list[last].Gives == "":
			list[last].Gives = text
		case below:
			list[last].Example = text
		case line != "":
			list = append(list, Function{Group: group, Use: line})
		}
	}
	return list
})

// A Fact is one fact of the run: run.NAME.
type Fact struct{ Name, Type, Doc string }

// Facts are the members of the variable run. Conditions and route rules may read them; settings may not, because
// nothing that differs between an undisturbed and a resumed run may enter a prompt or an artifact.
var Facts = []Fact{
	{"name", "string", "name of the pipeline"},
	{"ending", "string", "how the run is about to end: cancelled, failed, else empty"},
	{"spentUSD", "number", "US dollars settled so far, assumed costs included"},
	{"reservedUSD", "number", "US dollars held for attempts under way"},
	{"capUSD", "number", "cap in US dollars; 0 = none"},
	{"spentTokens", "int", "tokens of all four classes together"},
	{"capTokens", "int", "cap in tokens; 0 = none"},
	{"completed", "int", "nodes that ended well"},
	{"failed", "int", "nodes that failed for good"},
	{"skipped", "int", "nodes that were skipped"},
	{"seconds", "number", "seconds of activity; pauses do not count"},
	{"compensations", "int", "undo actions so far"},
}

var runFacts = func() map[string]string {
	types := map[string]string{}
	for _, f := range Facts {
		types[f.Name] = f.Type
	}
	return types
}()

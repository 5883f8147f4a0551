package prompt

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"dagrun.dev/nodes"
)

// assembly is one prompt under way.
type assembly struct {
	task     *nodes.Task
	settings *Settings
	template *template
	slots    map[string]*slot // of the variables that are used
	uses     map[string]int
	fixed    int // characters of the template's own text
	out      *Assembled
}

// measure sets the estimate of what render would return.
func (a *assembly) measure() {
	chars := a.fixed
	for name, s := range a.slots {
		chars += s.chars() * a.uses[name]
	}
	a.out.Chars, a.out.Tokens = int64(chars), EstimateTokens(int64(chars))
}

func (a *assembly) warn(format string, args ...any) {
	if a.task.Warn != nil {
		a.task.Warn(english.Sprintf(format, args...))
	}
}

// english prints 51546 as 51,546.
var english = message.NewPrinter(language.English)

// An Assembled is a prompt ready to be asked.
type Assembled struct {
	Text string
	// Blocks are the parts of Text between the template's borders, joined they are Text. None is blank, but for
	// a prompt that is blank as a whole; without borders there is one.
	Blocks   []string
	Reads    [][]string // the artifacts and accumulators that stand in each block
	Chars    int64      // characters (not bytes) of Text
	Tokens   int64      // estimate: Chars / 4, rounded up
	Warnings []string
	Notes    []nodes.LogLine // the files whose list is to be recorded, and a decision for each step of trimming
}

// EstimateTokens is characters / 4, rounded up.
func EstimateTokens(chars int64) int64 { return (chars + 3) / 4 }

// Fixed is how many of the first blocks hold nothing but texts and files of the specification: nothing that a run
// has written.
func (p *Assembled) Fixed() int {
	for i, reads := range p.Reads {
		if len(reads) > 0 {
			return i
		}
	}
	return len(p.Reads)
}

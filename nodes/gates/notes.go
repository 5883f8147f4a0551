package gates

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/nodes/internal/browser"
)

// notes say for a plan what is checked, where, within which bounds, and what follows from it: how
// many checks, those of each class in their order, and the verdict's rules.
func (s *settings) notes() []string {
	first := strconv.Itoa(len(s.Checks)) + " checks"
	if len(s.Checks) == 1 {
		first = "1 check"
	}
	if s.browsing() && len(s.Viewports) > 0 {
		first += " at " + browser.Sizes(s.Viewports)
	}
	out := []string{first}
	for _, class := range s.classes() {
		var names []string
		for i := range s.Checks {
			if c := &s.Checks[i]; c.Class == class {
				names = append(names, c.note(s.Viewports))
			}
		}
		out = append(out, strings.TrimPrefix(class+" checks: ", " ")+strings.Join(names, ", "))
	}
	return append(out, "verdict: "+s.Verdict.note())
}

// note is the name of a check with its bounds, and with its viewports where they are its own.
func (c *check) note(common []browser.Viewport) string {
	text := c.Name
	if c.Min != nil {
		text += " >= " + strconv.FormatFloat(*c.Min, 'g', -1, 64)
	}
	if c.Max != nil {
		text += " <= " + strconv.FormatFloat(*c.Max, 'g', -1, 64)
	}
	if c.method() == byCode && !slices.Equal(c.Viewports, common) {
		text += " at " + browser.Sizes(c.Viewports)
	}
	return text
}

func (v *verdict) note() string {
	var rules []string
	for _, r := range v.Rules {
		about := r.about()
		if r.AtLeast > 1 {
			about = fmt.Sprintf("%d %s", r.AtLeast, about)
		}
		rules = append(rules, about+" -> "+r.Then)
	}
	return strings.Join(append(rules, "else "+v.Else), ", ")
}

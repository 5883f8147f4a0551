package simagent

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Fault is one rule: which calls go wrong, how, and how often.
type Fault struct {
	Match  map[string]values `json:"match"`
	Kind   string            `json:"fault"`
	Arg    string            `json:"arg,omitempty"`
	Times  *int              `json:"times,omitempty"`  // failures after which it is over; default 1, -1 = never
	Chance *float64          `json:"chance,omitempty"` // 0..1; default 1
}

// fails are the faults that make the call fail, succeeds those that do not; refusals fail too.
var (
	fails = []string{
		"refused", "max_turns", "budget", "max_tokens", "truncated", "cut", "empty", "no_artifact", "bad_answer",
		"hang", "crash", "exit", "deaf",
	}
	succeeds = []string{"linger", "drip", "noise", "flood", "big", "orphan", "denied", "other_model"}
)

// checkKind returns an error for a fault that is none.
func checkKind(name string) error {
	all := slices.Concat(slices.Collect(maps.Keys(refusals)), fails, succeeds)
	if slices.Contains(all, name) {
		return nil
	}
	slices.Sort(all)
	return fmt.Errorf("unknown fault %q; want one of %s", name, strings.Join(all, ", "))
}

// fault returns the rule that applies to this call, if any. Rules count recorded failures, never
// starts: a crash of the runner uses none up. One that does not make the call fail always applies.
func (a *agent) fault() *Fault {
	for i := range a.Faults {
		f := &a.Faults[i]
		times := 1
		if f.Times != nil {
			times = *f.Times
		}
		over := times >= 0 && a.Failures >= times && !slices.Contains(succeeds, f.Kind)
		if over || !a.fits(f.Match) {
			continue
		}
		if f.Chance != nil && a.chance(i) >= *f.Chance {
			continue
		}
		return f
	}
	return nil
}

// chance draws for a rule and a failure number.
func (a *agent) chance(rule int) float64 {
	call := fmt.Appendf(nil, "fault\x00%d\x00%s\x00%d\x00%d\x00%d", a.Seed, a.Node, a.Generation, a.Failures, rule)
	return draw(call)
}

// LoadFaults returns the rules of a text, or of the .yaml file that it names, relative to dir.
func LoadFaults(text, dir string) ([]Fault, error) {
	if !isFile(text) {
		return ParseFaults(text)
	}
	list, err := readYAML[Fault](beside(dir, text))
	if err != nil {
		return nil, err
	}
	for i, f := range list {
		if err := checkKind(f.Kind); err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return list, nil
}

func isFile(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasSuffix(text, ".yaml") || strings.HasSuffix(text, ".yml") || strings.HasSuffix(text, ".json")
}

// ParseFaults reads rules written as MATCH:FAULT[(ARG)][*TIMES][%PERCENT], separated by
// semicolons. The name of a file is no mistake; it is read when a node runs.
func ParseFaults(text string) ([]Fault, error) {
	if isFile(text) {
		return nil, nil
	}
	var list []Fault
	for _, rule := range strings.Split(text, ";") {
		rule = strings.TrimSpace(rule)
		if rule == "" {
			continue
		}
		f, err := parseFault(rule)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", rule, err)
		}
		list = append(list, f)
	}
	return list, nil
}

// rule is one in words: what it matches, the fault, its argument, how often, and how likely.
var rule = regexp.MustCompile(`^([^:]*):\s*(\w+)\s*(?:\((.*)\))?` +
	`\s*(?:\*\s*(inf|[1-9]\d*))?\s*(?:%\s*(\d+(?:\.\d+)?))?$`)

func parseFault(text string) (f Fault, err error) {
	m := rule.FindStringSubmatch(text)
	if m == nil {
		return f, errors.New("want MATCH:FAULT(ARG)*TIMES%PERCENT, " +
			"of which all from the bracket on may be left out, e.g. role=builder:rate_limited*2 or *:hang")
	}
	f = Fault{Match: map[string]values{}, Kind: m[2], Arg: m[3]}
	for _, pair := range strings.Split(strings.TrimSpace(m[1]), ",") {
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case ok:
			f.Match[strings.TrimSpace(name)] = strings.Split(strings.TrimSpace(value), "|")
		case pair != "*" && pair != "":
			return f, fmt.Errorf("want label=value in %q", pair)
		}
	}
	if m[4] != "" {
		times, err := strconv.Atoi(m[4])
		if err != nil {
			times = -1
		}
		f.Times = &times
	}
	if m[5] != "" {
		percent, _ := strconv.ParseFloat(m[5], 64)
		if percent <= 0 || percent > 100 {
			return f, fmt.Errorf("want a percentage behind %%, not %s", m[5])
		}
		percent /= 100
		f.Chance = &percent
	}
	return f, checkKind(f.Kind)
}

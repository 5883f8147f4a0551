package simagent

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
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

// kinds are the faults, and whether the call fails by them.
var kinds = map[string]bool{
	"rate_limited": true, "overloaded": true, "server_error": true, "auth": true, "billing": true, "quota_wait": true, "refused": true,
	"input_too_big": true, "max_turns": true, "budget": true, "max_tokens": true, "truncated": true, "cut": true, "empty": true, "no_artifact": true, "bad_answer": true,
	"hang": true, "crash": true, "exit": true, "deaf": true,
	"linger": false, "drip": false, "noise": false, "flood": false, "big": false, "orphan": false, "denied": false, "other_model": false,
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
		if !a.fits(f.Match) || kinds[f.Kind] && times >= 0 && a.Failures >= times {
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
	sum := sha256.Sum256(fmt.Appendf(nil, "fault\x00%d\x00%s\x00%d\x00%d\x00%d", a.Seed, a.Node, a.Generation, a.Failures, rule))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

// LoadFaults returns the rules of a text, or of the .yaml file that it names, relative to dir.
func LoadFaults(text, dir string) ([]Fault, error) {
	if !isFile(text) {
		return ParseFaults(text)
	}
	file := text
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	list, err := readYAML[Fault](file)
	if err != nil {
		return nil, err
	}
	for i, f := range list {
		if _, ok := kinds[f.Kind]; !ok {
			return nil, fmt.Errorf("rule %d: unknown fault %q", i+1, f.Kind)
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

func parseFault(rule string) (Fault, error) {
	var f Fault
	match, what, ok := strings.Cut(rule, ":")
	if !ok {
		return f, fmt.Errorf("want MATCH:FAULT, e.g. role=builder:rate_limited*2 or *:hang")
	}
	f.Match = map[string]values{}
	if m := strings.TrimSpace(match); m != "*" && m != "" {
		for _, pair := range strings.Split(m, ",") {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return f, fmt.Errorf("want label=value in %q", pair)
			}
			f.Match[strings.TrimSpace(name)] = strings.Split(strings.TrimSpace(value), "|")
		}
	}
	return f, f.what(strings.TrimSpace(what))
}

// what reads FAULT[(ARG)][*TIMES][%PERCENT].
func (f *Fault) what(s string) error {
	end := strings.IndexAny(s, "(*%")
	if end < 0 {
		end = len(s)
	}
	f.Kind = strings.TrimSpace(s[:end])
	if _, ok := kinds[f.Kind]; !ok {
		return fmt.Errorf("unknown fault %q; want one of %s", f.Kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	rest := strings.TrimSpace(s[end:])
	if strings.HasPrefix(rest, "(") {
		shut := strings.LastIndex(rest, ")")
		if shut < 0 {
			return fmt.Errorf("the parenthesis is not closed")
		}
		f.Arg, rest = rest[1:shut], strings.TrimSpace(rest[shut+1:])
	}
	if strings.HasPrefix(rest, "*") {
		end := strings.IndexByte(rest, '%')
		if end < 0 {
			end = len(rest)
		}
		times := -1
		if n := strings.TrimSpace(rest[1:end]); n != "inf" {
			var err error
			if times, err = strconv.Atoi(n); err != nil || times < 1 {
				return fmt.Errorf("want a number of times or inf behind *, not %q", n)
			}
		}
		f.Times, rest = &times, rest[end:]
	}
	if strings.HasPrefix(rest, "%") {
		p, err := strconv.ParseFloat(strings.TrimSpace(rest[1:]), 64)
		if err != nil || !(p > 0 && p <= 100) {
			return fmt.Errorf("want a percentage behind %%, not %q", rest[1:])
		}
		p /= 100
		f.Chance, rest = &p, ""
	}
	if rest != "" {
		return fmt.Errorf("%q is not understood", rest)
	}
	return nil
}

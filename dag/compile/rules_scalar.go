package compile

import (
	"fmt"
	"strings"

	"cuelang.org/go/cue"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// scalar compiles constants, bounds, patterns and their conjunctions.
func (c *ruleCompiler) scalar(r *rules.Rule, v cue.Value, op cue.Op, args []cue.Value) {
	switch op {
	case cue.AndOp:
		for _, a := range args {
			c.and(r, a)
		}
	case cue.NoOp:
		if v.IsConcrete() {
			if x := constant(v); x != nil {
				r.Enum = []*tree.Value{x}
			}
		}
	case cue.GreaterThanOp, cue.GreaterThanEqualOp, cue.LessThanOp, cue.LessThanEqualOp:
		c.bound(r, v, op, args[0])
	case cue.RegexMatchOp, cue.NotRegexMatchOp, cue.NotEqualOp:
		c.text(r, v, op, args[0])
	default:
		c.refuse(v, fmt.Sprintf("no rule for operator %v", op))
	}
}

// and merges one conjunct of a scalar into r.
func (c *ruleCompiler) and(r *rules.Rule, v cue.Value) {
	x := c.value(v)
	if len(x.AnyOf) > 0 || len(x.Enum) > 0 && len(r.Enum) > 0 {
		c.refuse(v, "alternatives inside a conjunction")
	}
	if x.Types != 0 && r.Types != 0 {
		r.Types &= x.Types
	}
	if x.Min != nil && (r.Min == nil || *x.Min > *r.Min || *x.Min == *r.Min && x.MinX) {
		r.Min, r.MinX = x.Min, x.MinX
	}
	if x.Max != nil && (r.Max == nil || *x.Max < *r.Max || *x.Max == *r.Max && x.MaxX) {
		r.Max, r.MaxX = x.Max, x.MaxX
	}
	r.Match = append(r.Match, x.Match...)
	r.NotMatch = append(r.NotMatch, x.NotMatch...)
	r.Not = append(r.Not, x.Not...)
	r.Enum = append(r.Enum, x.Enum...)
	if x.Want != "" {
		r.Want = x.Want
	}
}

func (c *ruleCompiler) bound(r *rules.Rule, v cue.Value, op cue.Op, arg cue.Value) {
	n, err := arg.Float64()
	if err != nil {
		c.refuse(v, "a bound that is not a number")
		return
	}
	switch op {
	case cue.GreaterThanOp, cue.GreaterThanEqualOp:
		r.Min, r.MinX = &n, op == cue.GreaterThanOp
	default:
		r.Max, r.MaxX = &n, op == cue.LessThanOp
	}
}

func (c *ruleCompiler) text(r *rules.Rule, v cue.Value, op cue.Op, arg cue.Value) {
	s, err := arg.String()
	if err != nil {
		c.refuse(v, "a pattern that is not a string")
		return
	}
	switch op {
	case cue.RegexMatchOp:
		r.Match = append(r.Match, s)
	case cue.NotRegexMatchOp:
		r.NotMatch = append(r.NotMatch, s)
	default:
		r.Not = append(r.Not, s)
	}
}

// constant returns a concrete value as data, or nil where it is none.
func constant(v cue.Value) *tree.Value {
	b, err := v.MarshalJSON()
	if err != nil {
		return nil
	}
	x := new(tree.Value)
	if x.UnmarshalJSON(b) != nil {
		return nil
	}
	return x
}

// doc returns the first comment of a value as plain text.
func doc(v cue.Value) string {
	for _, g := range v.Doc() {
		if text := strings.TrimSpace(g.Text()); text != "" {
			return text
		}
	}
	return ""
}

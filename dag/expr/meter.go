package expr

import (
	"math/bits"
	"regexp"
	"strings"
	"sync"

	"dagrun.dev/internal/rules"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// Loops are counted by the interpreter; what one call costs is not. A text of a megabyte may be
// replaced in itself, a list doubled forty times in a row may be searched: the evaluation then takes
// all memory, or hours, within a single step. Every call is therefore paid for before it is made, by
// the size of what it is given, from a budget that an evaluation brings along. The prices depend on
// values alone, so that the same expression is cut at the same place everywhere.
const maxWork = 64_000_000 // units that an evaluation may spend; a unit is some ten nanoseconds

// A budget is what is left of an evaluation's work. It belongs to one evaluation.
type budget struct{ left int }

// budgetName is how a call finds the budget of its evaluation; no expression can write it.
const budgetName = "@budget"

// charge takes work off the budget, and reports whether there was enough.
func (p *budget) charge(work int) bool {
	p.left -= min(work, maxWork+1)
	return p.left >= 0
}

func (p *budget) exhausted() ref.Val {
	return types.NewErr("needs more than %d steps: a loop over what is large, or a row of values that double", maxWork)
}

// A meteredCall pays before it calls.
type meteredCall struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	does *functions.Overload
	re   *pattern // of a call of matches with a literal
}

// Function names the call. One of matches is not told to the planner, which would call it unpaid.
func (c *meteredCall) Function() string {
	if name := c.InterpretableCall.Function(); name != overloads.Matches {
		return name
	}
	return "@matches"
}

func (c *meteredCall) Eval(a interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

func (c *meteredCall) Exec(f *interpreter.ExecutionFrame) ref.Val {
	vals := make([]ref.Val, len(c.args))
	for i, a := range c.args {
		if vals[i] = a.Exec(f); types.IsUnknownOrError(vals[i]) {
			return vals[i]
		}
	}
	p := budgetOf(f)
	if err := c.charge(p, vals); err != nil {
		return err
	}
	v := types.LabelErrNode(c.ID(), c.call(vals))
	if s, ok := v.(types.String); ok && len(s) > maxOutput {
		return tooLong()
	}
	return v
}

func tooLong() ref.Val { return types.NewErr("a text of more than %d bytes", maxOutput) }

func budgetOf(f *interpreter.ExecutionFrame) *budget {
	if v, ok := f.ResolveName(budgetName); ok {
		return v.(*budget)
	}
	return &budget{left: maxWork} // of a constant that the planner computes
}

func (c *meteredCall) call(vals []ref.Val) ref.Val {
	d := c.does
	switch {
	case c.re != nil:
		return c.re.matches(vals[0])
	case d.OperandTrait != 0 && !vals[0].Type().HasTrait(d.OperandTrait):
	case len(vals) == 1 && d.Unary != nil:
		return d.Unary(vals[0])
	case len(vals) == 2 && d.Binary != nil:
		return d.Binary(vals[0], vals[1])
	case d.Function != nil:
		return d.Function(vals...)
	}
	return types.NewErr("no such overload: %s", c.InterpretableCall.Function())
}

// charge pays for a call; what it returns is why the call is not made.
func (c *meteredCall) charge(p *budget, vals []ref.Val) ref.Val {
	if c.re == nil && c.InterpretableCall.Function() == overloads.Matches {
		return p.chargePattern(vals)
	}
	work, length := 0, 0
	if c.re != nil {
		work = c.re.work(vals[0])
	} else {
		work, length = price(c.InterpretableCall.Function(), vals, p.left)
	}
	if length > maxOutput {
		return tooLong()
	}
	if !p.charge(work) {
		return p.exhausted()
	}
	return nil
}

// price is what a call costs, and how long the text is that it makes where that is known beforehand.
// Nothing is looked at for longer than left allows.
func price(fn string, vals []ref.Val, left int) (work, length int) {
	switch fn {
	case operators.Add:
		length = textLen(vals[0]) + textLen(vals[1]) // two lists are joined without being copied
		return 1 + length/4, length
	case operators.Equals, operators.NotEquals:
		a := weight(vals[0], left)
		return 1 + min(a, weight(vals[1], min(a, left))), 0
	case operators.In:
		if _, ok := vals[1].(traits.Mapper); ok {
			return 1, 0
		}
		if a := weight(vals[0], left); a <= perValue { // a number, say
			return 1 + 4*items(vals[1]), 0
		}
	case "replace":
		length = replaced(vals)
		return 1 + length/4, length
	case "join":
		work = 1 + perValue*items(vals[0])
		if work <= left {
			length = joined(vals)
		}
		return work + length/4, length
	case "split":
		return 1 + textLen(vals[0])/4 + 8*pieces(vals), 0
	case "lists.range":
		n, _ := vals[0].(types.Int)
		return 1 + 8*int(min(max(n, 0), maxList+1)), 0
	case "distinct", "sets.contains", "sets.equivalent", "sets.intersects":
		return 1 + items(vals[0])*(1+weight(vals[len(vals)-1], left)/8), 0
	case "sort", "@sortByAssociatedKeys":
		n := items(vals[0])
		return 1 + (n+weight(vals[0], left))*bits.Len(uint(n)), 0
	case "rotate", "slice", "reverse":
		return 1 + 8*items(vals[0]) + textLen(vals[0])/4, 0
	case "indexOf", "lastIndexOf", "substring", "charAt": // they take the text apart first
		return 1 + textLen(vals[0]), 0
	case "flatten":
		if len(vals) == 1 {
			return 1 + 8*items(vals[0]), 0
		}
	}
	if cheapCalls[fn] {
		return 1, 0
	}
	for _, v := range vals {
		work += 1 + weight(v, left)
	}
	return work, 0
}

// cheapCalls cost the same whatever they are given.
var cheapCalls = map[string]bool{
	"size": true, "orValue": true, "or": true, "hasValue": true, "value": true, "first": true, "last": true,
	"optional.of": true, "optional.none": true,
}

const (
	perUnit  = 8  // bytes of text that are looked at for a unit
	perValue = 16 // units for looking at a value
)

// weight is what looking at all that v holds costs. It stops beyond left.
func weight(v ref.Val, left int) int {
	rest := left * perUnit
	weigh(v, &rest, perValue*perUnit)
	if rest < 0 {
		return maxWork + 1
	}
	return left - rest/perUnit
}

// textLen is the length of a text, and nothing of anything else.
func textLen(v ref.Val) int {
	switch x := v.(type) {
	case types.String:
		return len(x)
	case types.Bytes:
		return len(x)
	}
	return 0
}

// items is the number of items of a list, up to more than anybody can pay for, and nothing of anything else.
func items(v ref.Val) int {
	if l, ok := v.(traits.Lister); ok {
		n, _ := l.Size().(types.Int)
		return int(min(n, maxWork+1))
	}
	return 0
}

// replaced is the length of text.replace(old, new), or a little more.
func replaced(vals []ref.Val) int {
	text, _ := vals[0].(types.String)
	old, _ := vals[1].(types.String)
	if len(vals) < 3 {
		return 0
	}
	return len(text) + strings.Count(string(text), string(old))*textLen(vals[2])
}

// joined is the length of list.join(separator).
func joined(vals []ref.Val) int {
	list, ok := vals[0].(traits.Lister)
	if !ok {
		return 0
	}
	n := items(vals[0])
	length := 0
	if len(vals) > 1 {
		length = max(n-1, 0) * textLen(vals[1])
	}
	for i := 0; i < n && length <= maxOutput; i++ {
		length += textLen(list.Get(types.Int(i)))
	}
	return length
}

// pieces is how many texts text.split(separator) makes, or one more.
func pieces(vals []ref.Val) int {
	text, _ := vals[0].(types.String)
	by, _ := vals[1].(types.String)
	return strings.Count(string(text), string(by)) + 1
}

// A pattern is a regular expression. Matching takes time in proportion to its size and the text's.
type pattern struct {
	re   *regexp.Regexp
	size int // in instructions
}

func (p *pattern) work(text ref.Val) int { return 1 + textLen(text)*p.size }

func (p *pattern) matches(text ref.Val) ref.Val {
	s, ok := text.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(text)
	}
	return types.Bool(p.re.MatchString(string(s)))
}

// chargePattern pays for a call of matches whose pattern is computed.
func (p *budget) chargePattern(vals []ref.Val) ref.Val {
	src, ok := vals[1].(types.String)
	if !ok {
		return nil // the call says so
	}
	if !p.charge(1 + len(src)*4) {
		return p.exhausted()
	}
	_, size, err := rules.CompilePattern(string(src))
	if err != nil {
		return types.WrapErr(err)
	}
	if !p.charge(size*32 + textLen(vals[0])*size) {
		return p.exhausted()
	}
	return nil
}

// metered makes a call pay. It decorates what the interpreter has planned.
func metered(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	d := does(call)
	if d == nil || d.NonStrict {
		return i, nil
	}
	m := &meteredCall{InterpretableCall: call, args: call.Args(), does: d}
	if call.Function() == overloads.Matches && len(m.args) == 2 {
		return m, m.literal()
	}
	return m, nil
}

// does finds what a call does, as the planner found it.
func does(call interpreter.InterpretableCall) *functions.Overload {
	switch fn := call.Function(); fn {
	case operators.Equals:
		return &functions.Overload{Binary: types.Equal}
	case operators.NotEquals:
		return &functions.Overload{Binary: func(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }}
	}
	if d := bindings()[call.OverloadID()]; d != nil {
		return d
	}
	return bindings()[call.Function()]
}

// literal compiles the pattern of a call of matches where it is written out.
func (c *meteredCall) literal() (err error) {
	k, ok := c.args[1].(interpreter.InterpretableConst)
	if !ok {
		return nil
	}
	if src, ok := k.Value().(types.String); ok {
		c.re = new(pattern)
		c.re.re, c.re.size, err = rules.CompilePattern(string(src))
	}
	return err
}

// bindings are what the functions of the language do, by the names that the planner looks them up with.
var bindings = sync.OnceValue(func() map[string]*functions.Overload {
	out := map[string]*functions.Overload{}
	env, err := baseEnv()
	if err != nil {
		return out
	}
	for _, fn := range env.Functions() {
		list, _ := fn.Bindings()
		for _, b := range list {
			out[b.Operator] = b
		}
	}
	return out
})

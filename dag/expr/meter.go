package expr

import (
	"regexp"
	"sync"

	"dagrun.dev/internal/rules"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// The interpreter counts the steps of loops; it does not count what one call costs. A text of a
// megabyte may be replaced in itself, a list doubled forty times in a row may be searched: the
// evaluation then takes all memory, or hours, within a single step. Every call is therefore paid for
// before it is made, by the size of its arguments (see prices), from the budget of its evaluation.
// Prices depend on values alone, so that the same expression is cut at the same place everywhere.
//
// CEL's own limit (cel.CostLimit, cel.CostTracking) was measured against this and refused, at v0.31:
//
//   - It learns of a call when the call has returned, so that text.replace(”, text) has used up the
//     memory before it is charged.
//   - It searches a stack of all values seen for every attribute, and no turn of a loop takes its
//     values off. list.all(x, x.n >= 0) takes 2.7, 28, 47 and 230 ms for lists of 1, 2, 4 and 8
//     thousand, and 0.6, 1.6, 2.5 and 7.6 ms with the calls paid for here.
const (
	maxWork    = 64_000_000 // units that an evaluation may spend; a unit is some ten nanoseconds
	maxFolding = 100_000    // and the reading of one constant part of it
)

// A budget is what is left of an evaluation's work. It belongs to one evaluation.
type budget struct{ left int }

// budgetName is how a call finds the budget of its evaluation; no expression can write it.
const budgetName = "@budget"

// charge takes work off the budget. It returns an error where there is not enough, else nil.
func (b *budget) charge(work int) ref.Val {
	b.left -= min(work, maxWork+1)
	if b.left < 0 {
		return types.NewErr("needs more than %d steps: a loop over what is large, or a row of values that double", maxWork)
	}
	return nil
}

func budgetOf(f *interpreter.ExecutionFrame) *budget {
	if v, ok := f.ResolveName(budgetName); ok {
		return v.(*budget)
	}
	return &budget{left: maxWork} // of a constant that the planner computes
}

// A meteredCall evaluates its arguments, pays for the call, and makes it.
type meteredCall struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	call paidCall
}

// A paidCall makes a call after it has taken its price off the budget; it returns an error instead
// where the budget does not suffice.
type paidCall func(b *budget, args []ref.Val) ref.Val

func (c *meteredCall) Eval(a interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(a)) }

func (c *meteredCall) Exec(f *interpreter.ExecutionFrame) ref.Val {
	args := make([]ref.Val, len(c.args))
	for i, a := range c.args {
		if args[i] = a.Exec(f); types.IsUnknownOrError(args[i]) {
			return args[i]
		}
	}
	v := types.LabelErrNode(c.ID(), c.call(budgetOf(f), args))
	if textLen(v) > maxOutput {
		return tooLong()
	}
	return v
}

func tooLong() ref.Val { return types.NewErr("a text of more than %d bytes", maxOutput) }

// metered makes a call pay. It decorates what the interpreter has planned.
func metered(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	m := &meteredCall{InterpretableCall: call, args: call.Args()}
	if call.Function() == overloads.Matches && len(m.args) == 2 {
		var err error
		m.call, err = matching(m.args[1])
		return struct{ interpreter.InterpretableV2 }{m}, err // no call any more: the planner would make it unpaid
	}
	does := bindings()[call.OverloadID()]
	if does == nil {
		does = bindings()[call.Function()]
	}
	if does == nil || does.NonStrict {
		return i, nil
	}
	m.call = priced(call.Function(), does)
	return m, nil
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
	// The planner knows equality itself.
	out[operators.Equals] = &functions.Overload{Binary: types.Equal}
	out[operators.NotEquals] = &functions.Overload{Binary: func(a, b ref.Val) ref.Val {
		return types.Bool(types.Equal(a, b) != types.True)
	}}
	return out
})

// priced is a call of any function but matches.
func priced(fn string, does *functions.Overload) paidCall {
	price, lengthOf := prices[fn], lengths[fn]
	if price == nil {
		price = perArgument
	}
	return func(b *budget, args []ref.Val) ref.Val {
		if err := b.charge(1 + price(args, b.left)); err != nil {
			return err
		}
		if lengthOf != nil {
			length := lengthOf(args)
			if length > maxOutput {
				return tooLong()
			}
			if err := b.charge(length / 4); err != nil {
				return err
			}
		}
		switch {
		case does.OperandTrait != 0 && !args[0].Type().HasTrait(does.OperandTrait):
		case len(args) == 1 && does.Unary != nil:
			return does.Unary(args[0])
		case len(args) == 2 && does.Binary != nil:
			return does.Binary(args[0], args[1])
		case does.Function != nil:
			return does.Function(args...)
		}
		return types.NewErr("no such overload: %s", fn)
	}
}

// matching is a call of matches, which takes time in proportion to the text and to the size of the
// pattern. A pattern that is written out is compiled once; any other is paid for before it is compiled.
func matching(src interpreter.InterpretableV2) (paidCall, error) {
	var literal *regexp.Regexp
	var instructions int
	if k, ok := src.(interpreter.InterpretableConst); ok {
		if s, ok := k.Value().(types.String); ok {
			var err error
			if literal, instructions, err = rules.CompilePattern(string(s)); err != nil {
				return nil, err
			}
		}
	}
	return func(b *budget, args []ref.Val) ref.Val {
		text, isText := args[0].(types.String)
		pattern, isPattern := args[1].(types.String)
		if !isText || !isPattern {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		re, size := literal, instructions
		if re == nil {
			if err := b.charge(4 * len(pattern)); err != nil {
				return err
			}
			var err error
			if re, size, err = rules.CompilePattern(string(pattern)); err != nil {
				return types.WrapErr(err)
			}
			if err := b.charge(32 * size); err != nil {
				return err
			}
		}
		if err := b.charge(1 + len(text)*size); err != nil {
			return err
		}
		return types.Bool(re.MatchString(string(text)))
	}, nil
}

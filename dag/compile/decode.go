package compile

import (
	encoding "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/tree"
)

// into reads the fields of a map into the struct of the plan that has them by the same names (its JSON), all of them
// or only those named. The rules have checked their types; what the plan cannot hold is a mistake at its place. Fields
// that the struct does not have are for others to read.
func (b *builder) into(v *tree.Value, path string, to any, only ...string) {
	part := &tree.Value{Kind: tree.Map}
	for _, f := range v.Map() {
		if only == nil || slices.Contains(only, f.Name) {
			part.Fields = append(part.Fields, f)
		}
	}
	for len(part.Fields) > 0 {
		wrong, ok := errors.AsType[*json.SemanticError](json.Unmarshal(part.AppendJSON(nil), to, asWritten))
		if !ok {
			return
		}
		part = part.Clone()
		part.Pos = v.Pos
		at, in, where := part, part, path
		for name := range wrong.JSONPointer.Tokens() {
			next := child(at, name)
			if next.Pos != at.Pos { // else it is the short form of a map
				where = at.PathOf(where, name)
			}
			in, at = at, next
		}
		if at == part { // nothing more can be read
			b.fail(v.Pos, path, "%v", wrong)
			return
		}
		in.Fields = slices.DeleteFunc(in.Fields, func(f tree.Field) bool { return f.Value == at })
		in.Items = slices.DeleteFunc(in.Items, func(x *tree.Value) bool { return x == at })
		switch {
		case expr.HasTemplate(at): // an item of a foreach will say it
		case wrong.GoType == reflect.TypeFor[dag.Duration]():
			b.fail(at.Pos, where, "want a duration from 1ns to 292 years, got %q", at.Str)
		case wrong.GoType == reflect.TypeFor[dag.USD]():
			b.fail(at.Pos, where, "want an amount in US dollars, got %s", at.Plain())
		default:
			b.fail(at.Pos, where, "%v", wrong.Err)
		}
	}
}

// asWritten reads a text from a number or truth value as that is written, and JSON as the plan holds it.
var asWritten = json.WithUnmarshalers(json.JoinUnmarshalers(
	json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *string) error {
		if d.PeekKind() == '"' {
			return json.SkipFunc
		}
		raw, err := d.ReadValue()
		*to = string(raw)
		return err
	}),
	json.UnmarshalFunc(exactly[int]), json.UnmarshalFunc(exactly[int64]),
	json.UnmarshalFunc(func(raw []byte, to *encoding.RawMessage) (err error) {
		*to, err = dag.AppendCanonical(nil, raw)
		return err
	})))

// exactly reads a whole number that JSON can hold: a plan has a digest.
func exactly[T int | int64](raw []byte, to *T) error {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if *to = T(n); n > mostExact || n < -mostExact {
		return fmt.Errorf("%d is beyond 2^53 and cannot be kept exactly in JSON", n)
	}
	return err
}

const mostExact = 1 << 53

// rows reads a map of structs into a list, each with its name.
func rows[T any](b *builder, section string, fields []tree.Field) []T {
	var out []T
	for _, f := range fields {
		var x T
		b.into(f.Value, tree.Join(section, f.Name), &x)
		reflect.ValueOf(&x).Elem().Field(0).SetString(f.Name)
		out = append(out, x)
	}
	return out
}

// canonical returns a value as the plan holds it, or nil where it cannot.
func (b *builder) canonical(v *tree.Value, path string) encoding.RawMessage {
	if v.Kind == tree.Map && len(v.Fields) == 0 {
		return encoding.RawMessage("{}")
	}
	raw, err := dag.AppendCanonical(nil, v.AppendJSON(nil))
	if err != nil {
		at, path := inexact(v, path)
		b.fail(at.Pos, path, "%v, in an expression with string(...)", err)
		return nil
	}
	return raw
}

// inexact finds the first integer in a value that a plan cannot hold.
func inexact(v *tree.Value, path string) (*tree.Value, string) {
	tooBig := func(x *tree.Value) bool { return x.Kind == tree.Int && (x.Int > mostExact || x.Int < -mostExact) }
	for _, f := range v.Fields {
		if f.Value.Any(tooBig) {
			return inexact(f.Value, tree.Join(path, f.Name))
		}
	}
	for i, x := range v.Items {
		if x.Any(tooBig) {
			return inexact(x, tree.At(path, i))
		}
	}
	return v, path
}

// unlessEmpty leaves out settings that say nothing.
func unlessEmpty(raw encoding.RawMessage) encoding.RawMessage {
	if string(raw) == "{}" {
		return nil
	}
	return raw
}

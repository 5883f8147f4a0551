package source

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue"

	"dagrun.dev/internal/tree"
)

// A walker turns an evaluated value into a tree whose places are those of the user's files.
type walker struct {
	index  *index
	lim    tree.Limits
	values int
	found  tree.Diagnostics
	hidden tree.Diagnostics // values that an error in CUE keeps from being seen
	full   bool             // a limit is passed
}

// value walks v, which is written at w; around is the place of what holds it, path is for messages.
func (k *walker) value(v cue.Value, w *written, path string, depth int, around tree.Pos) *tree.Value {
	out := &tree.Value{Pos: k.index.place(v, w, around)}
	if !k.within(out, path, depth) {
		return out
	}
	if isShape(path) && k.shape(out, v, w, path, depth) {
		return out
	}
	if d, ok := v.Default(); ok {
		v = d
	}
	var err error
	switch v.Kind() {
	case cue.NullKind:
	case cue.BoolKind:
		out.Kind = tree.Bool
		out.Bool, _ = v.Bool()
	case cue.IntKind:
		out.Kind = tree.Int
		if out.Int, err = v.Int64(); err != nil {
			k.fail(out, path, "the number does not fit 64 bits")
		}
		k.spelled(out, v, w)
	case cue.FloatKind:
		out.Kind = tree.Float
		if out.Float, err = v.Float64(); err != nil {
			k.fail(out, path, "the number is out of range")
		}
		k.spelled(out, v, w)
	case cue.StringKind:
		out.Kind = tree.String
		out.Str, _ = v.String()
	case cue.ListKind:
		out.Kind = tree.List
		it, _ := v.List()
		for i := 0; it.Next(); i++ {
			item := k.value(it.Value(), w.field(strconv.Itoa(i)), tree.At(path, i), depth+1, out.Pos)
			out.Items = append(out.Items, item)
		}
	case cue.StructKind:
		k.fields(out, v, w, path, depth)
	case cue.BytesKind:
		k.fail(out, path, "bytes are not supported; use a string")
	default:
		// Not concrete, or an error inside: whoever validated the value reports it. A map hides
		// its fields then, but those written out can be had by name.
		if len(w.fields()) > 0 {
			k.fields(out, v, w, path, depth)
		} else {
			k.hide(out.Pos, path, v)
		}
	}
	return out
}

// within counts a value and says whether it is within the limits.
func (k *walker) within(out *tree.Value, path string, depth int) bool {
	k.values++
	switch {
	case k.full:
		return false
	case k.lim.Values > 0 && k.values > k.lim.Values:
		k.fail(out, path, fmt.Sprintf("the specification has more than %d values", k.lim.Values))
	case k.lim.Depth > 0 && depth > k.lim.Depth:
		k.fail(out, path, fmt.Sprintf("nested deeper than %d levels; does it refer to itself?", k.lim.Depth))
	default:
		return true
	}
	k.full = true
	return false
}

// spelled notes how a number is written, where that differs from how it will be printed.
func (k *walker) spelled(out *tree.Value, v cue.Value, w *written) {
	if text := k.index.number(v, w); text != "" {
		out.Written(text)
	}
}

func (k *walker) fields(out *tree.Value, v cue.Value, w *written, path string, depth int) {
	out.Kind = tree.Map
	add := func(name string, v cue.Value) {
		x := k.value(v, w.field(name), tree.Join(path, name), depth+1, out.Pos)
		out.Fields = append(out.Fields, tree.Field{Name: name, Pos: k.index.key(w.field(name), x.Pos), Value: x})
	}
	if it, err := v.Fields(); err == nil {
		for it.Next() {
			add(it.Selector().Unquoted(), it.Value())
		}
	}
	if v.Err() == nil {
		return
	}
	for _, name := range w.fields() {
		if out.Get(name) != nil || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") {
			continue
		}
		x := v.LookupPath(cue.MakePath(cue.Str(name)))
		if !x.Exists() {
			k.hide(out.Pos, tree.Join(path, name), x)
		}
		add(name, x)
	}
}

func (k *walker) hide(at tree.Pos, path string, v cue.Value) {
	text := "CUE gives no value here"
	if err := v.Err(); err != nil {
		text += ": " + err.Error()
	}
	k.hidden = append(k.hidden, tree.Diagnostic{Pos: at, Path: path, Text: text})
}

func (k *walker) fail(at *tree.Value, path, text string) {
	k.found = append(k.found, tree.Diagnostic{Pos: at.Pos, Path: path, Text: text})
}

package compile

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// into reads the fields of a map into the struct of the plan that has them by the same names (its JSON), all of them
// or only those named. The rules have checked their types; what the plan cannot hold is a mistake at its place. Fields
// that the struct does not have are for others to read.
func (b *builder) into(v *tree.Value, path string, to any, only ...string) {
	if v != nil {
		b.structure(v, path, reflect.ValueOf(to).Elem(), only)
	}
}

// rows reads a map of structs into a list, each with its name.
func rows[T any](b *builder, section string, fields []tree.Field) []T {
	var out []T
	for _, f := range fields {
		var x T
		to := reflect.ValueOf(&x).Elem()
		b.structure(f.Value, tree.Join(section, f.Name), to, nil)
		to.Field(0).SetString(f.Name)
		out = append(out, x)
	}
	return out
}

func (b *builder) structure(v *tree.Value, path string, to reflect.Value, only []string) {
	index := fieldsByName(to.Type())
	for _, f := range v.Fields {
		if i, ok := index[f.Name]; ok && (only == nil || slices.Contains(only, f.Name)) {
			b.value(f.Value, path, f.Name, to.Field(i))
		}
	}
}

// fieldsByName are the fields of a struct by their names in JSON.
func fieldsByName(t reflect.Type) map[string]int {
	if known, ok := fieldNames.Load(t); ok {
		return known.(map[string]int)
	}
	index := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		index[name] = i
	}
	fieldNames.Store(t, index)
	return index
}

var fieldNames sync.Map // reflect.Type -> map[string]int

func (b *builder) value(v *tree.Value, path, name string, to reflect.Value) {
	if to.Kind() == reflect.Pointer { // what is not said is nil
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	switch x := to.Addr().Interface().(type) {
	case *string:
		*x = v.Plain()
	case *bool:
		*x = v.Bool
	case *int:
		*x = int(b.exactly(v, path, name))
	case *int64:
		*x = b.exactly(v, path, name)
	case *float64:
		*x = v.Number()
	case *dag.Duration:
		*x = b.duration(v, path, name)
	case *dag.USD:
		*x = b.usd(v, path, name)
	case *[]string:
		*x = strs(v)
	case *map[string]string:
		*x = make(map[string]string, len(v.Fields))
		for _, f := range v.Fields {
			(*x)[f.Name] = f.Value.Plain()
		}
	case *json.RawMessage:
		*x = b.canonical(v, tree.Join(path, name))
	default:
		path = tree.Join(path, name)
		if to.Kind() == reflect.String { // a word of the plan
			to.SetString(v.Plain())
			return
		}
		if v.Kind == tree.String && to.Kind() == reflect.Struct && to.Field(0).Kind() == reflect.String { // its name alone
			to.Field(0).SetString(v.Str)
			return
		}
		if to.Kind() != reflect.Slice {
			b.structure(v, path, to, nil)
			return
		}
		for i, item := range v.Items {
			to.Set(reflect.Append(to, reflect.Zero(to.Type().Elem())))
			b.value(item, path, tree.At("", i), to.Index(i))
		}
	}
}

// canonical returns a value as the plan holds it, or nil where it cannot.
func (b *builder) canonical(v *tree.Value, path string) json.RawMessage {
	if v.Kind == tree.Map && len(v.Fields) == 0 {
		return json.RawMessage("{}")
	}
	raw, err := dag.AppendCanonical(nil, v.AppendJSON(nil))
	if err != nil {
		b.fail(v.Pos, path, "%v", err)
		return nil
	}
	return raw
}

// unlessEmpty leaves out settings that say nothing.
func unlessEmpty(raw json.RawMessage) json.RawMessage {
	if string(raw) == "{}" {
		return nil
	}
	return raw
}

// noTime is what is wrong with a limit of time that is zero.
const noTime = "0 leaves no time at all; want more than 0, or leave it out"

// positive refuses fields of a map that are zero.
func (b *builder) positive(v *tree.Value, path, text string, names ...string) {
	for _, name := range names {
		x := v.Get(name)
		if x == nil {
			continue
		}
		zero := (x.Kind == tree.Int || x.Kind == tree.Float) && x.Number() == 0
		if x.Kind == tree.String {
			d, err := time.ParseDuration(x.Str)
			zero = err == nil && d == 0
		}
		if zero {
			b.fail(x.Pos, tree.Join(path, name), "%s", text)
		}
	}
}

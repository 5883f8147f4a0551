package compile

import (
	"fmt"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// An axis is one dimension of an expansion.
type axis struct {
	name  string
	path  string // of in, or of files
	pos   tree.Pos
	in    *expr.Template
	files bool             // in is the pattern of names of files
	key   *binding         // nil: the item's own
	fixed bool             // the items are the same whatever the axes before
	items []map[string]any // then, once computed
	shown bool             // items stand in texts of the template
}

func (x *expansion) compileAxis(lang *expr.Lang, a *tree.Value, path string) *expr.Lang {
	in, from := a.Get("in"), "in"
	if pattern := a.Get("files"); pattern != nil && in == nil {
		in, from = pattern, "files"
	} else if (pattern == nil) == (in == nil) {
		x.b.fail(a.Pos, path, "want one of in (a list, a map or a number) and files (a pattern of names of files)")
		return nil
	}
	ax := &axis{name: a.Get("as").Text(), path: tree.Join(path, from), pos: in.Pos, files: from == "files"}
	ax.in = x.b.template(lang, in, ax.path, false)
	ax.fixed = ax.in != nil && ax.in.Fixed()
	lang = x.bind(lang.WithItem, ax.name, a.Get("as").Pos, path+".as")
	if lang == nil {
		return nil
	}
	if k := a.Get("key"); k != nil {
		ax.key = x.binding(lang, "", k, path+".key", "")
	}
	x.axes = append(x.axes, ax)
	return lang
}

// fits multiplies the axes that depend on no other, before anything is made.
func (x *expansion) fits() bool {
	n := 1
	for _, a := range x.axes {
		if !a.fixed {
			continue
		}
		items := x.items(a)
		if x.stopped {
			return false
		}
		if n *= max(len(items), 1); n > x.most() {
			x.b.fail(a.pos, a.path, "the axes have more than %d combinations", x.most())
			return false
		}
	}
	return true
}

// axis goes through the items of axis i, and for each through the axes after it.
func (x *expansion) axis(i int) {
	if i == len(x.axes) {
		x.make()
		return
	}
	a := x.axes[i]
	for _, item := range x.items(a) {
		x.vars[a.name] = item
		if x.steps++; x.steps > maxSteps {
			x.stop(a.pos, a.path, fmt.Errorf("the axes have more than %d items in all", maxSteps))
			return
		}
		x.axis(i + 1)
		if x.stopped {
			return
		}
	}
}

// items returns what an axis binds, once for all when it depends on no other axis.
func (x *expansion) items(a *axis) []map[string]any {
	if a.items != nil {
		return a.items
	}
	v, err := a.in.Fill(x.vars, nil, false)
	if err != nil {
		x.stop(a.pos, a.path, err)
		return nil
	}
	itemsOf := itemsOf
	if a.files {
		itemsOf = x.b.filesOf
	}
	values, names, err := itemsOf(v)
	if err != nil {
		x.stop(v.Pos, a.path, err)
		return nil
	}
	items := make([]map[string]any, len(values))
	seen := map[string]int{}
	for i, item := range values {
		key := ""
		if names != nil {
			key = names[i]
		}
		if items[i] = x.item(a, item, key, i, len(values), seen); x.stopped {
			return nil
		}
	}
	if a.fixed {
		a.items = items
	}
	return items
}

// itemsOf returns the items of a list, of a map with their names, or those of a number of rounds.
func itemsOf(v *tree.Value) (values []*tree.Value, names []string, err error) {
	rounds := 0
	switch {
	case v.Kind == tree.List:
		values = v.Items
	case v.Kind == tree.Map:
		for _, f := range v.Fields {
			names, values = append(names, f.Name), append(values, f.Value)
		}
	case v.Kind == tree.Int && v.Int >= 0:
		rounds = int(min(v.Int, maxNodes+1))
	default:
		return nil, nil, fmt.Errorf("want a list, a map or a number of rounds, got %s", rules.Show(v))
	}
	if len(values) > maxNodes || rounds > maxNodes {
		return nil, nil, fmt.Errorf("want at most %d items", maxNodes)
	}
	for i := range rounds {
		values = append(values, &tree.Value{Kind: tree.Int, Int: int64(i + 1), Pos: v.Pos})
	}
	return values, names, nil
}

// item returns what item i of an axis is bound to. name is its name in a map.
func (x *expansion) item(a *axis, item *tree.Value, name string, i, count int, seen map[string]int) map[string]any {
	native := item.Native()
	if text, ok := respelled(item); ok && a.shown {
		x.b.warn(item.Pos, a.path,
			"%s stands as %s in the texts of the template; write it in quotes to keep it", item.Str, text)
	}
	if a.key == nil {
		if name == "" {
			name = x.ownKey(a, item)
		}
		return expr.Item(native, name, i, count)
	}
	x.vars[a.name] = expr.Item(native, "", i, count)
	key, err := expr.Key(a.key.prog, x.vars, nil, seen, i)
	if err != nil {
		x.stop(item.Pos, a.key.path, err)
	}
	return expr.Item(native, key, i, count)
}

// ownKey is a text or number itself, or the field id of a map; else there is none.
func (x *expansion) ownKey(a *axis, v *tree.Value) string {
	if v.Kind == tree.Map {
		if v = v.Get("id"); v == nil {
			return ""
		}
	}
	if text, ok := respelled(v); ok && !a.shown {
		x.b.warn(v.Pos, a.path, "the key of %s is %s; write it in quotes to keep it", v.Str, text)
	}
	s, err := expr.Text(v)
	if err != nil {
		return ""
	}
	return s
}

package scan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	values "dagrun.dev/internal/tree"
	"dagrun.dev/internal/yamltree"
	"dagrun.dev/nodes"
)

// An item is a file that matches, and what is known of it.
type item struct {
	file    *file
	content []*file // by path

	problem string         // what is wrong with the files
	failed  string         // why a value of it cannot be computed: it is not owed then
	meta    any            // nil: not parsed yet
	sum     string         // of the content
	values  map[string]any // of vars, as far as they are computed
	order   []any
}

// An evaluation is what the items of one scan have in common. It belongs to one goroutine.
type evaluation struct {
	s    *settings
	now  time.Time
	tree *tree
	top  *folder
	root *os.Root

	vars      map[string]*nodes.Formula // by name
	names     []string                  // of vars, in order
	owed      nodes.Formula
	order     []nodes.Formula
	frequency nodes.Formula
}

func newEvaluation(s *settings, t *nodes.Task) (*evaluation, error) {
	list, err := t.Formulas(s.formulas())
	if err != nil {
		return nil, err
	}
	e := &evaluation{s: s, now: t.Now, vars: map[string]*nodes.Formula{}, top: &folder{}}
	for i, x := range s.formulas().List {
		if x.Field != "" {
			e.vars[x.Field], e.names = &list[i], append(e.names, x.Field)
		}
	}
	list = list[len(e.names):]
	e.owed, e.order, e.frequency = list[0], list[1:len(list)-1], list[len(list)-1]
	dir := s.Root
	if !filepath.IsAbs(dir) {
		if dir != "" && !filepath.IsLocal(dir) {
			return nil, nodes.Permanent(nodes.Failf("config", "root: want a folder beside the specification, or an absolute "+
				"path, got %q", dir))
		}
		dir = filepath.Join(t.SpecDir, dir)
	}
	e.tree = &tree{dir: dir, skip: s.Skip}
	if e.root, err = os.OpenRoot(dir); err != nil {
		return nil, nodes.Permanent(&nodes.Error{Category: "file_io", Message: "root", Err: err})
	}
	return e, nil
}

// decide computes all values of an item, and reports whether it is owed and what it counts as.
func (e *evaluation) decide(it *item) (owed bool, counts string) {
	value := func(name string) (any, error) { return e.value(it, name) }
	eval := func(what string, f *nodes.Formula) any {
		if it.failed != "" {
			return nil
		}
		v, err := f.Eval(value)
		if err != nil {
			it.failed = what + ": " + err.Error()
		}
		return v
	}
	for _, name := range e.names {
		if _, err := e.value(it, name); err != nil && it.failed == "" {
			it.failed = err.Error()
		}
	}
	is, _ := eval("if", &e.owed).(bool)
	v := eval("count", &e.frequency)
	for i := range e.order {
		if is {
			it.order = append(it.order, eval(fmt.Sprintf("order[%d]", i), &e.order[i]))
		}
	}
	return is && it.failed == "", fmt.Sprint(v)
}

// value returns a field of an item, or another variable of the expressions.
func (e *evaluation) value(it *item, name string) (any, error) {
	switch name {
	case "now":
		return e.now, nil
	case "path":
		return e.shown(it.file.path), nil
	case "dir":
		return e.shown(it.file.in.path), nil
	case "key":
		return key(it.file.path), nil
	case "own":
		return e.load(it).file.digest, nil
	case "files":
		return int64(len(it.content)), nil
	case "paths":
		return e.paths(it, len(it.content)), nil
	case "digest":
		return e.sum(it), nil
	case "modified":
		return e.modified(it), nil
	case "meta":
		return e.load(it).meta, nil
	case "problem":
		e.load(it)
		e.sum(it)
		return it.problem, nil
	}
	if v, known := it.values[name]; known {
		return v, nil
	}
	v, err := e.vars[name].Eval(func(name string) (any, error) { return e.value(it, name) })
	if err != nil {
		return nil, fmt.Errorf("vars.%s: %w", name, err)
	}
	if it.values == nil {
		it.values = make(map[string]any, len(e.names))
	}
	it.values[name] = v
	return v, nil
}

// byOrder puts what is owed more in front.
func byOrder(a, b *item) int {
	for i := range a.order {
		if c := compare(b.order[i], a.order[i]); c != 0 {
			return c
		}
	}
	return 0
}

// compare orders values of one type, and values of different types by that.
func compare(a, b any) int {
	switch a := a.(type) {
	case int64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, b)
		case float64:
			return cmp.Compare(float64(a), b)
		}
	case float64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, float64(b))
		case float64:
			return cmp.Compare(a, b)
		}
	case string:
		if b, ok := b.(string); ok {
			return cmp.Compare(a, b)
		}
	case bool:
		if b, ok := b.(bool); ok {
			return cmp.Compare(rank(a), rank(b))
		}
	}
	return cmp.Compare(rank(a), rank(b))
}

func rank(v any) int {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case int64, float64:
		return 2
	}
	return 3
}

// recorded is an item as a value of the node.
func (e *evaluation) recorded(it *item) map[string]any {
	out := map[string]any{}
	for name := range fields { // a set
		if name != "paths" && (name != "meta" || e.s.Parse != "none") {
			out[name], _ = e.value(it, name)
		}
	}
	out["paths"] = e.paths(it, min(len(it.content), mostPaths))
	out["modified"] = e.modified(it).UTC().Format(time.RFC3339Nano)
	for _, name := range e.names {
		out[name] = it.values[name]
	}
	return out
}

func (e *evaluation) paths(it *item, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = e.shown(it.content[i].path)
	}
	return list
}

// modified is when one of the item's files was last written.
func (e *evaluation) modified(it *item) time.Time {
	last := e.known(it.file).stamp.modified
	for _, f := range it.content {
		last = max(last, e.known(f).stamp.modified)
	}
	return time.Unix(0, last)
}

// digest is that of a file of the content, empty where it cannot be read, which is a problem of the item.
func (e *evaluation) digest(it *item, f *file) string {
	e.known(f)
	if f.digest == "" && f.err == nil {
		f.read(e.root, 0)
	}
	if f.err != nil && it.problem == "" {
		it.problem = f.path + ": " + reason(f.err)
	}
	return f.digest
}

// sum is a digest of names and contents.
func (e *evaluation) sum(it *item) string {
	if it.sum == "" {
		h := sha256.New()
		for _, f := range it.content {
			fmt.Fprintf(h, "%s %s\n", relative(it.file.in.path, f.path), e.digest(it, f))
		}
		it.sum = hex.EncodeToString(h.Sum(nil))
	}
	return it.sum
}

// relative is the way from a folder to a file, both from the root.
func relative(from, to string) string {
	n := 0
	for from != "" && !strings.HasPrefix(to, from+"/") {
		if n++; !strings.Contains(from, "/") {
			from = ""
			break
		}
		from = path.Dir(from)
	}
	return strings.Repeat("../", n) + strings.TrimPrefix(strings.TrimPrefix(to, from), "/")
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._]+`)

// key is a name that a foreach may take: what can be read of the path, and a digest of it.
func key(p string) string {
	text := strings.TrimLeft(unsafe.ReplaceAllString(p, "-"), "._-")
	if len(text) > 60 {
		text = strings.TrimLeft(text[len(text)-60:], "._-")
	}
	sum := sha256.Sum256([]byte(p))
	return strings.TrimLeft(text+"-"+hex.EncodeToString(sum[:4]), "-")
}

// load reads the item's own file, once: what it says and its digest belong together.
func (e *evaluation) load(it *item) *item {
	if it.meta != nil {
		return it
	}
	it.meta = map[string]any{}
	most := int64(0)
	if e.s.Parse != "none" {
		most = e.s.MaxKB << 10
	}
	f := e.known(it.file)
	var data []byte
	if f.err == nil {
		data = f.read(e.root, most)
	}
	problem := ""
	switch {
	case f.err != nil:
		problem = "cannot be read: " + reason(f.err)
	case e.s.Parse == "none":
	case int64(len(data)) > most:
		problem = fmt.Sprintf("cannot be parsed: it is longer than %d kB (see maxKB)", e.s.MaxKB)
	default:
		v, err := parse(e.s.Parse, data)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			problem = "cannot be parsed: " + strings.TrimPrefix(first, ":") // the place has no name of a file in front
		} else if v != nil {
			it.meta = v
		}
	}
	it.problem = cmp.Or(it.problem, problem)
	return it
}

// limits bound what one file may hold.
var limits = values.Limits{Depth: 64, Values: 100_000, Aliases: 1_000}

// parse returns nil where there is nothing.
func parse(how string, data []byte) (any, error) {
	var v *values.Value
	var err error
	switch how {
	case "json":
		v, err = values.ParseJSON("", data, limits)
	case "frontmatter":
		data = front(data)
		fallthrough
	default:
		if len(bytes.TrimSpace(data)) == 0 {
			return nil, nil
		}
		v, _, err = yamltree.Parse("", data, limits)
	}
	if err != nil {
		return nil, err
	}
	return v.Native(), nil
}

// front is the YAML at the start of a document; nil where there is none.
func front(data []byte) []byte {
	lines := bytes.SplitAfter(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\n"))
	is := func(line []byte, text string) bool { return string(bytes.TrimRight(line, " \t\r\n")) == text }
	if !is(lines[0], "---") {
		return nil
	}
	end := slices.IndexFunc(lines[1:], func(l []byte) bool { return is(l, "---") || is(l, "...") })
	if end < 0 {
		return nil
	}
	return bytes.Join(lines[1:end+1], nil)
}

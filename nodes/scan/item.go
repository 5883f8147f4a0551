package scan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
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
	text    string         // what is in its own file, as JSON; empty: not read yet
	unfit   string         // what is wrong with that file
	meta    any            // text, parsed; nil: not yet
	sum     string         // of the content
	unread  bool           // a file of the content cannot be read
	basis   string         // see entry
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

	memory *memory
	began  time.Time // by the clock of the files

	vars      map[string]*nodes.Formula // by name
	names     []string                  // of vars, in order
	lasting   []string                  // those of them that depend on nothing but files
	wide      bool                      // and on more of them than the item's own
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
	about := ""
	for _, name := range e.names {
		about += e.vars[name].Digest
		if reads := e.readBy(name, map[string]bool{}); !reads["now"] {
			e.lasting = append(e.lasting, name)
			e.wide = e.wide || reads["files"] || reads["paths"] || reads["digest"] || reads["modified"] || reads["problem"]
		}
	}
	e.began = time.Now()
	e.memory = remember(t.Cache, dir, s, about)
	if e.root, err = os.OpenRoot(dir); err != nil {
		return nil, nodes.Permanent(&nodes.Error{Category: "file_io", Message: "root", Err: err})
	}
	return e, nil
}

// readBy adds to a set what a value reads, and what those values read.
func (e *evaluation) readBy(name string, set map[string]bool) map[string]bool {
	for _, r := range e.vars[name].Reads {
		if !set[r] {
			set[r] = true
			if e.vars[r] != nil {
				e.readBy(r, set)
			}
		}
	}
	return set
}

// recall takes the values of an item that are remembered and still true.
func (e *evaluation) recall(it *item) {
	if len(e.lasting) == 0 {
		return
	}
	x, ok := e.basis(it)
	if !ok {
		return
	}
	it.basis = x
	before := it.file.before
	if before == nil || before.basis != x {
		return
	}
	r := reader{rest: before.values}
	known := make(map[string]any, len(e.names))
	for _, name := range e.lasting {
		known[name] = r.value()
	}
	if !r.bad {
		it.values, it.problem = known, cmp.Or(it.problem, before.problem)
	}
}

// basis is a digest of the stamps of all files that lasting values depend on; ok is false where it would not tell a
// change.
func (e *evaluation) basis(it *item) (_ string, ok bool) {
	b := make([]byte, 0, 400)
	add := func(f *file) bool {
		e.known(f)
		for _, n := range []int64{f.stamp.size, f.stamp.modified, f.stamp.changed, int64(f.stamp.inode)} {
			b = binary.AppendVarint(b, n)
		}
		b = append(append(b, f.path...), 0)
		return f.sure && f.err == nil
	}
	ok = add(it.file)
	for _, f := range it.content {
		ok = ok && (!e.wide || add(f))
	}
	sum := sha256.Sum256(b)
	return string(sum[:16]), ok
}

// entries are what is to be remembered.
func (e *evaluation) entries(items []*item) map[string]entry {
	now := make(map[string]entry, len(e.memory.entries))
	add := func(f *file) (x entry, ok bool) {
		before, had := e.memory.entries[f.path]
		switch {
		case !f.known:
			x, ok = before, had // nobody asked: it is held to its stamp when somebody does
		case f.before != nil:
			x, ok = before, true
		case f.sure && f.err == nil:
			x, ok = entry{stamp: f.stamp, digest: f.digest}, true
		}
		if ok {
			now[f.path] = x
		}
		return x, ok
	}
	for _, it := range items {
		for _, f := range it.content {
			add(f)
		}
	}
	for _, it := range items {
		x, ok := add(it.file)
		if !ok {
			continue
		}
		if it.text != "" {
			x.meta, x.problem = it.text, it.unfit
		}
		if x.basis, x.values = "", ""; it.basis != "" && it.failed == "" && !it.unread {
			x.basis, x.values = it.basis, e.lastingOf(it)
		}
		now[it.file.path] = x
	}
	return now
}

// lastingOf are the values that can be remembered.
func (e *evaluation) lastingOf(it *item) string {
	var b []byte
	for _, name := range e.lasting {
		b = appendValue(b, it.values[name])
	}
	return string(b)
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
	e.recall(it)
	if it.values == nil && it.basis != "" {
		e.memory.fresh = true
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
		e.load(it)
		return it.file.digest, nil
	case "files":
		return int64(len(it.content)), nil
	case "paths":
		return e.paths(it, len(it.content)), nil
	case "digest":
		return e.contentDigest(it), nil
	case "modified":
		return e.modified(it), nil
	case "meta":
		e.load(it)
		return it.metaOf(), nil
	case "problem":
		e.load(it)
		e.contentDigest(it)
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

// record is an item as a value of the node.
func (e *evaluation) record(it *item) map[string]any {
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

// contentDigest is over names and contents. A file that cannot be read is a problem of its item.
func (e *evaluation) contentDigest(it *item) string {
	if it.sum != "" {
		return it.sum
	}
	var b []byte
	for _, f := range it.content {
		if e.known(f); f.digest == "" && f.err == nil {
			e.read(f, 0)
		}
		if f.err != nil {
			it.unread = true
			it.problem = cmp.Or(it.problem, f.path+": "+reason(f.err))
		}
		b = append(append(append(append(b, relative(it.file.in.path, f.path)...), ' '), f.digest...), '\n')
	}
	it.sum = sumOf(b)
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

// load finds out what is in the item's own file, once: what it says and its digest belong together.
func (e *evaluation) load(it *item) {
	if it.text != "" {
		return
	}
	f := e.known(it.file)
	if x := f.before; x != nil && x.meta != "" {
		it.text, it.unfit = x.meta, x.problem
	} else {
		it.text, it.unfit = e.open(f)
	}
	it.problem = cmp.Or(it.problem, it.unfit)
}

func (e *evaluation) open(f *file) (text, problem string) {
	const nothing = "{}"
	most := int64(0)
	if e.s.Parse != "none" {
		most = e.s.MaxKB << 10
	}
	var data []byte
	if f.err == nil {
		data = e.read(f, most)
	}
	switch {
	case f.err != nil:
		return nothing, "cannot be read: " + reason(f.err)
	case e.s.Parse == "none":
		return nothing, ""
	case int64(len(data)) > most:
		return nothing, fmt.Sprintf("cannot be parsed: it is longer than %d kB (see maxKB)", e.s.MaxKB)
	}
	v, err := parse(e.s.Parse, data)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nothing, "cannot be parsed: " + strings.TrimPrefix(first, ":") // the place has no name of a file in front
	}
	if v == nil || v.Kind == values.Null {
		return nothing, ""
	}
	return string(v.AppendJSON(nil)), ""
}

// metaOf is what is in the item's file; an empty map where there is nothing that can be read.
func (it *item) metaOf() any {
	if it.meta == nil {
		it.meta = map[string]any{}
		if v, err := values.ParseJSON("", []byte(it.text), limits); err == nil {
			it.meta = v.Native()
		}
	}
	return it.meta
}

// limits bound what one file may hold.
var limits = values.Limits{Depth: 64, Values: 100_000, Aliases: 1_000}

// parse returns nil where there is nothing.
func parse(how string, data []byte) (v *values.Value, err error) {
	switch how {
	case "json":
		return values.ParseJSON("", data, limits)
	case "frontmatter":
		data = front(data)
	}
	if len(bytes.TrimSpace(data)) > 0 {
		v, _, err = yamltree.Parse("", data, limits)
	}
	return v, err
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

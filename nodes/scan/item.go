package scan

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	number  int // from 1
	file    *file
	own     *file   // where its metadata stands: file, or one beside it, which may be missing
	content []*file // by path
	was     *record // what is remembered of it; nil: nothing

	problem string // what is wrong with the files
	failed  string // why a value of it cannot be computed: it is not owed then
	text    string // what is in its own file, as JSON; empty: not read yet
	unfit   string // what is wrong with that file
	meta    any    // text, parsed; nil: not yet
	sum     string // of the content
	unread  bool   // a file of the content cannot be read
	values  []any  // of the formulas, as far as they are computed
	lasts   bool   // those that last can be remembered
}

// An evaluation is what the items of one scan have in common. It belongs to one goroutine.
type evaluation struct {
	s    *settings
	now  any
	tree *tree
	top  *folder

	memory *memory

	vars     map[string]int // the places of their formulas
	names    []string       // of vars, in order: their formulas come first, then those of if, order and count
	texts    []nodes.FormulaText
	formulas []nodes.Formula
	lasting  []bool // formulas that depend on nothing but files
	looks    bool   // some formula depends on what is in an item's own file
	wide     bool   // or on the files of its content
	nothing  []any  // the values of an item of which none is computed
}

func newEvaluation(s *settings, t *nodes.Task) (*evaluation, error) {
	x := s.formulas()
	list, err := t.Formulas(x)
	if err != nil {
		return nil, err
	}
	e := &evaluation{s: s, now: t.Now, vars: map[string]int{}, texts: x.List, formulas: list, top: &folder{}}
	for i, x := range x.List {
		e.nothing = append(e.nothing, missing{})
		if x.Field != "" {
			e.vars[x.Field], e.names = i, append(e.names, x.Field)
		}
	}
	dir := s.Root
	if !filepath.IsAbs(dir) {
		if dir != "" && !filepath.IsLocal(dir) {
			return nil, nodes.Permanent(nodes.Failf("config", "root: want a folder beside the specification, or an absolute "+
				"path, got %q", dir))
		}
		dir = filepath.Join(t.SpecDir, dir)
	}
	e.tree = &tree{dir: dir, skip: s.Skip, began: time.Now()}
	about := []byte(fmt.Sprintf("%q %d", s.Root, len(s.Order)))
	for i := range list {
		about = append(about, list[i].Digest...)
		reads := e.readBy(i, map[string]bool{})
		e.lasting = append(e.lasting, !reads["now"])
		e.wide = e.wide || reads["files"] || reads["paths"] || reads["digest"] || reads["modified"] || reads["problem"]
		e.looks = e.looks || e.wide || reads["own"] || reads["meta"]
	}
	e.memory = remember(t.Cache, dir, s, sumOf(about))
	if e.tree.root, err = os.OpenRoot(dir); err != nil {
		return nil, nodes.Permanent(&nodes.Error{Category: "file_io", Message: "root", Err: err})
	}
	return e, nil
}

// readBy adds to a set what a formula reads, and what those that it reads do.
func (e *evaluation) readBy(formula int, set map[string]bool) map[string]bool {
	for _, r := range e.formulas[formula].Reads {
		if !set[r] {
			set[r] = true
			if i, is := e.vars[r]; is {
				e.readBy(i, set)
			}
		}
	}
	return set
}

// lookAt brings together items and what is remembered of them, both by path, and looks at the files that are needed.
func (e *evaluation) lookAt(items []*item) {
	records, files := e.memory.records, e.memory.files
	for _, it := range items {
		for len(records) > 0 && files[records[0].from].path < it.own.path {
			records = records[1:]
		}
		if len(records) == 0 || files[records[0].from].path != it.own.path {
			continue
		}
		it.was = &records[0]
		known := files[it.was.from+1 : it.was.to]
		for _, f := range it.content {
			for len(known) > 0 && known[0].path < f.path {
				known = known[1:]
			}
			if len(known) > 0 && known[0].path == f.path {
				f.was = &known[0]
			}
		}
	}
	var list []*file
	add := func(f *file) {
		if e.looks && !f.asked {
			f.asked, list = true, append(list, f)
		}
	}
	for _, it := range items {
		if it.was != nil {
			it.own.was = &files[it.was.from]
		}
		add(it.own)
		for _, f := range it.content {
			if e.wide {
				add(f)
			}
		}
	}
	parallel(len(list), func(i int) { e.tree.known(list[i]) })
}

// recall takes the values of an item that are remembered and still true.
func (e *evaluation) recall(it *item) {
	it.values = slices.Clone(e.nothing)
	if !e.looks {
		return
	}
	it.lasts = e.tree.known(it.own).sure
	same := it.was != nil && it.own.same
	if e.wide {
		same = same && it.was.to-it.was.from == len(it.content)+1
		for i, f := range it.content {
			it.lasts = it.lasts && e.tree.known(f).sure && f.err == nil
			same = same && e.memory.files[it.was.from+1+i] == entry{f.path, f.stamp, f.digest}
		}
	}
	if !it.lasts || !same || it.was.values == "" {
		return
	}
	r := reader{rest: it.was.values}
	for i, lasts := range e.lasting {
		if lasts {
			it.values[i] = r.value()
		}
	}
	if r.bad {
		copy(it.values, e.nothing)
		return
	}
	it.problem = cmp.Or(it.problem, it.was.problem)
}

// remembered is what is to be remembered of an item.
func (e *evaluation) remembered(it *item) (r record, files []entry) {
	files = append(make([]entry, 0, len(it.content)+1), it.own.entry())
	for _, f := range it.content {
		files = append(files, f.entry())
	}
	switch {
	case it.text != "":
		r.meta, r.problem = it.text, it.unfit
	case it.was != nil && files[0].stamp == it.own.was.stamp:
		r.meta, r.problem = it.was.meta, it.was.problem
	}
	for _, x := range files {
		it.lasts = it.lasts && (x.stamp != stamp{} || !e.wide)
	}
	if !it.lasts || it.failed != "" || it.unread || files[0].stamp == (stamp{}) {
		return r, files
	}
	var b []byte
	for i, lasts := range e.lasting {
		if lasts {
			b = appendValue(b, it.values[i])
		}
	}
	r.values = string(b)
	return r, files
}

// decide computes all values of an item, and reports whether it is owed and what it counts as.
func (e *evaluation) decide(it *item) (owed bool, counts string) {
	e.recall(it)
	computed := false
	compute := func(i int) any {
		if it.values[i] == (missing{}) {
			computed = computed || e.lasting[i]
		}
		v, err := e.compute(it, i)
		if err != nil && it.failed == "" {
			it.failed = err.Error()
		}
		return v
	}
	for i := range e.names {
		compute(i)
	}
	at := len(e.names)
	if it.failed == "" {
		owed, _ = compute(at).(bool)
	}
	if it.failed == "" && e.s.Count != "" {
		counts = fmt.Sprint(compute(len(e.formulas) - 1))
	}
	for i := range e.s.Order {
		if owed && it.failed == "" {
			compute(at + 1 + i)
		}
	}
	e.tree.fresh = e.tree.fresh || computed && it.lasts && it.failed == ""
	return owed && it.failed == "", counts
}

// compute returns the value of a formula.
func (e *evaluation) compute(it *item, i int) (any, error) {
	if it.values[i] != (missing{}) {
		return it.values[i], nil
	}
	v, err := e.formulas[i].Eval(func(name string) (any, error) { return e.value(it, name) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.texts[i].Path, err)
	}
	it.values[i] = v
	return v, nil
}

// value returns a field of an item, or another variable of the expressions.
func (e *evaluation) value(it *item, name string) (any, error) {
	if i, is := e.vars[name]; is {
		return e.compute(it, i)
	}
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
		return it.own.digest, nil
	case "metadata":
		return e.shown(it.own.path), nil
	case "files":
		return int64(len(it.content)), nil
	case "paths":
		return e.paths(it, len(it.content)), nil
	case "digest":
		return e.contentDigest(it), nil
	case "modified":
		return e.lastModified(it), nil
	case "meta":
		e.load(it)
		return it.metaOf(), nil
	case "problem":
		e.load(it)
		e.contentDigest(it)
		return it.problem, nil
	}
	return nil, fmt.Errorf("nothing is called %s", name)
}

// shown is a path as it is said and recorded: from the folder of the specification, or absolute where root is.
func (e *evaluation) shown(p string) string {
	switch {
	case e.s.Root == "" || e.s.Root == ".":
		return p
	case p == "":
		return filepath.ToSlash(filepath.Clean(e.s.Root))
	}
	return filepath.ToSlash(filepath.Join(e.s.Root, filepath.FromSlash(p)))
}

// byOrder puts what is owed more in front.
func (e *evaluation) byOrder(a, b *item) int {
	for i := range e.s.Order {
		if c := compare(b.values[len(e.names)+1+i], a.values[len(e.names)+1+i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.file.path, b.file.path)
}

// compare orders values of one type, and values of different types by that.
func compare(a, b any) int {
	x, xIs := a.(int64)
	y, yIs := b.(int64)
	if xIs && yIs { // beyond 2^53 a float tells them apart no more
		return cmp.Compare(x, y)
	}
	kindA, numberA, textA := ordered(a)
	kindB, numberB, textB := ordered(b)
	return cmp.Or(cmp.Compare(kindA, kindB), cmp.Compare(numberA, numberB), cmp.Compare(textA, textB))
}

// ordered is a value as its order has it: first truth values, then numbers, then texts.
func ordered(v any) (kind int, number float64, text string) {
	switch v := v.(type) {
	case bool:
		if v {
			number = 1
		}
		return 0, number, ""
	case int64:
		return 1, float64(v), ""
	case float64:
		return 1, v, ""
	case string:
		text = v
	}
	return 2, 0, text
}

// record is an item as a value of the node.
func (e *evaluation) record(it *item) map[string]any {
	out := map[string]any{}
	for name := range fields { // a set
		if name != "paths" && (name != "meta" || e.s.Parse != "none") && (name != "metadata" || e.s.Meta != "") {
			out[name], _ = e.value(it, name)
		}
	}
	out["paths"] = e.paths(it, min(len(it.content), mostPaths))
	out["modified"] = e.lastModified(it).UTC().Format(time.RFC3339Nano)
	for i, name := range e.names {
		out[name] = it.values[i]
	}
	return out
}

const mostPaths = 1_000 // of an item's content, as recorded

func (e *evaluation) paths(it *item, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = e.shown(it.content[i].path)
	}
	return list
}

// lastModified is when one of the item's files was last written.
func (e *evaluation) lastModified(it *item) time.Time {
	last := e.tree.known(it.file).stamp.modified
	for _, f := range it.content {
		last = max(last, e.tree.known(f).stamp.modified)
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
		if e.tree.known(f); f.digest == "" && f.err == nil {
			e.tree.read(f, 0)
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
	way, _ := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(to)) // both are relative and plain
	return filepath.ToSlash(way)
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
	f := e.tree.known(it.own)
	if f.same && it.was != nil && it.was.meta != "" {
		it.text, it.unfit = it.was.meta, it.was.problem
	} else {
		it.text, it.unfit = e.open(f)
		if it.own != it.file && errors.Is(f.err, fs.ErrNotExist) { // nobody has written it yet
			it.unfit = ""
		}
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
		data = e.tree.read(f, most)
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

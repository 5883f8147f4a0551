package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/dag"
	"dagrun.dev/internal/glob"
	"dagrun.dev/internal/regular"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// Bounds of the input files of a plan, all nodes together: each plan reads them all.
const (
	mostInputs     = 100_000
	mostInputBytes = 64 << 30
)

// nodeInputs finds the files beside the specification that a node, or the template of one, is given, and digests each
// once. Files that only a run knows of are among those of the plan, or they are a mistake.
func (b *builder) nodeInputs(list *tree.Value, where string) (names []string) {
	for i, v := range list.List() {
		at := tree.At(where, i)
		if !b.localPath(v, at) {
			continue
		}
		if err := glob.Check(v.Str); glob.Is(v.Str) && err != nil && (b.root == nil || !b.stands(v.Str)) {
			b.fail(v.Pos, at, "%v", err)
			continue
		}
		if text := b.findInputs(v.Str); text != "" {
			b.fail(v.Pos, at, "%s", text)
			continue
		}
		if !slices.Contains(names, v.Str) {
			names = append(names, v.Str)
		}
	}
	slices.Sort(names)
	return names
}

// findInputs adds the files that a name, a pattern or a folder stands for to those of the plan, and says what is wrong.
func (b *builder) findInputs(name string) string {
	if text, known := b.matched[name]; known {
		return text
	}
	text := b.findInputsOnce(name)
	if b.root != nil { // the evaluator of a run serves many goroutines
		b.matched[name] = text
	}
	return text
}

func (b *builder) findInputsOnce(name string) string {
	var found []string
	var err error
	switch {
	case b.root == nil:
		if len(b.plan.InputsOf(&dag.Node{Inputs: []string{name}})) == 0 {
			return "no input file of the plan is " + name + ": name the files that items may have in inputs of the " +
				"foreach node, by a pattern for example"
		}
		return ""
	case glob.Is(name) || strings.HasSuffix(name, "/"):
		found, err = b.walk(name)
	default:
		found = []string{name}
		if st, err := b.root.Stat(name); err == nil && st.IsDir() {
			return name + " is a folder: write " + name + "/ for all files in it"
		}
	}
	if err != nil {
		if where := (*fs.PathError)(nil); errors.As(err, &where) {
			name = where.Path
		}
		return b.why(name, err)
	}
	if len(found) == 0 {
		return "no file beside the specification matches " + name
	}
	for _, f := range found {
		if !utf8.ValidString(f) {
			return "the name of a file that matches " + name + " is not UTF-8"
		}
		if _, known := b.beside[f]; known {
			continue
		}
		in := b.digest(f)
		if in.bad != "" {
			return in.bad
		}
		b.beside[f] = in
		b.inputBytes += in.file.Size
		if len(b.beside) > mostInputs || b.inputBytes > mostInputBytes {
			return "the input files are more than a plan may have (100,000 files, 64 GiB): name fewer"
		}
	}
	return ""
}

// walk returns the files that a pattern or a folder stands for. Folders of runs are left out: what nodes write is no
// input. Where a link leads to a folder it is refused, for it may lead back.
func (b *builder) walk(name string) (found []string, err error) {
	start := path.Dir(glob.Literal(name) + "x")
	if st, err := regular.StatIn(b.root, start); err != nil {
		if errors.Is(err, fs.ErrNotExist) && glob.Is(name) {
			return nil, nil
		}
		return nil, err
	} else if !st.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: start, Err: errors.New("is not a folder")}
	}
	depth := -1 // of folders below, where no ** stands
	if !strings.Contains(name, "**") && !strings.HasSuffix(name, "/") {
		depth = strings.Count(strings.TrimPrefix(name, start+"/"), "/")
	}
	var visit func(dir string, depth int) error
	visit = func(dir string, depth int) error {
		list, err := b.list(dir)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == ownFolder }) {
			return nil
		}
		for _, e := range list {
			p := path.Join(dir, e.Name())
			kind := e.Type()
			if kind&fs.ModeSymlink != 0 && (dag.MatchesInput(name, p) || dag.MatchesInput(name, p+"/x")) {
				st, err := regular.StatIn(b.root, p)
				if err != nil {
					return err
				}
				if st.IsDir() {
					return &fs.PathError{Op: "open", Path: p, Err: errors.New("is a link to a folder: name that folder instead")}
				}
				kind = st.Mode().Type()
			}
			switch {
			case kind.IsDir() && depth != 0:
				if err := visit(p, depth-1); err != nil {
					return err
				}
			case !kind.IsDir() && dag.MatchesInput(name, p):
				found = append(found, p)
			}
		}
		return nil
	}
	return found, visit(start, depth)
}

// filesOf returns the files beside the specification that match a pattern, in order of their names.
func (b *builder) filesOf(v *tree.Value) (values []*tree.Value, names []string, err error) {
	switch {
	case v.Kind != tree.String || !glob.Is(v.Str):
		err = fmt.Errorf("want a pattern of names of files such as data/*.csv, got %s", rules.Show(v))
	case glob.Check(v.Str) != nil:
		err = glob.Check(v.Str)
	case !filepath.IsLocal(v.Str) || path.Clean(v.Str) != v.Str:
		err = fmt.Errorf("want a pattern below the folder of the specification in its plain form, got %s", rules.Show(v))
	default:
		names, err = b.walk(v.Str)
		if where := (*fs.PathError)(nil); errors.As(err, &where) {
			err = errors.New(b.why(where.Path, err))
		} else if err == nil && len(names) == 0 {
			err = fmt.Errorf("no file beside the specification matches %s", v.Str)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		item, base := &tree.Value{Kind: tree.Map, Pos: v.Pos}, path.Base(name)
		for _, f := range [][2]string{{"path", name}, {"dir", path.Dir(name)}, {"base", base}, {"ext", path.Ext(base)},
			{"name", strings.TrimSuffix(base, path.Ext(base))}} {
			value := &tree.Value{Kind: tree.String, Str: f[1], Pos: v.Pos}
			item.Fields = append(item.Fields, tree.Field{Name: f[0], Value: value, Pos: v.Pos})
		}
		values = append(values, item)
	}
	return values, names, err
}

// list returns what is in a folder, by name. A folder is read once for a plan.
func (b *builder) list(dir string) ([]fs.DirEntry, error) {
	if list, known := b.folders[dir]; known {
		return list, nil
	}
	f, err := b.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, c fs.DirEntry) int { return strings.Compare(a.Name(), c.Name()) })
	b.folders[dir] = list
	return list, nil
}

// undeclared warns of words of a command that name files beside the specification of which the plan knows nothing: an
// edit of such a file would not run the node again.
func (b *builder) undeclared(d *draft, t *nodes.Traits) {
	argv, r := d.with.Get("argv"), b.s.Settings(d.node.Kind)
	if !t.Ambient || argv == nil || b.root == nil || r.Field("argv") == nil || r.Field("argv").Rule.Name != "Argv" {
		return
	}
	dir := d.with.Get("dir").Text()
	for i, v := range argv.Items {
		word := v.Str
		if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
			word = value
		}
		name := path.Join(dir, word)
		program := i == 0 && !strings.Contains(word, "/") // looked for on PATH
		if program || word == "" || strings.Contains(word, "${") || path.IsAbs(name) || !b.stands(name) {
			continue
		}
		covers := func(in string) bool { return dag.MatchesInput(in, name) }
		if slices.ContainsFunc(d.node.Inputs, covers) || slices.Contains(d.node.Files, name) {
			continue
		}
		b.warn(v.Pos, tree.At(d.path+".with.argv", i), "%s stands beside the specification and is no input of the node: an "+
			"edit of it would not run the node again; write inputs: [%s]", name, name)
	}
}

// stands reports whether a file stands beside the specification.
func (b *builder) stands(name string) bool {
	if len(name) > longestPath || path.Clean(name) == "." || strings.HasPrefix(path.Clean(name), "..") {
		return false
	}
	is, known := b.isFile[name]
	if !known {
		st, err := b.root.Stat(name)
		is = err == nil && st.Mode().IsRegular()
		b.isFile[name] = is
	}
	return is
}

// unwrittenFile says what to write where a node reads what no node writes and what stands beside the specification.
func (b *builder) unwrittenFile(name string, written []string) string {
	if b.root != nil && b.stands(name) {
		return "; a file of that name stands beside the specification: write inputs: [" + name + "], and the command finds " +
			"it there, in the folder of the specification"
	}
	return rules.DidYouMean(name, written)
}

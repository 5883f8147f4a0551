package scan

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/internal/glob"
)

// A tree is the folder that is looked through, as it is while one scan looks. A folder is read once, when it is first
// asked for.
type tree struct {
	dir      string // absolute
	skip     []string
	problems []string // folders that could not be read
}

// A folder below the root.
type folder struct {
	path  string // from the root; "" = the root
	above *folder
	read  bool
	dirs  []*folder // by name
	files []*file   // by name
	home  *item     // the item whose folder this is
}

// A file of a folder, of any type but a folder.
type file struct {
	path string // from the root
	in   *folder
	link bool

	known  bool // what follows is
	stamp  stamp
	digest string // empty: not read yet
	err    error
	before *entry // what is remembered of it, and still true
	sure   bool   // what is known of it will be true as long as its stamp is
}

// runFolder is what a folder of a run holds: what nodes write is no item.
const runFolder = "_orchestrator"

// list reads a folder, once.
func (t *tree) list(f *folder) {
	if f.read {
		return
	}
	f.read = true
	list, err := os.ReadDir(filepath.Join(t.dir, filepath.FromSlash(f.path)))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || f.above == nil { // or it has gone meanwhile
			t.problems = append(t.problems, "the folder "+path.Join(".", f.path)+" cannot be read: "+reason(err))
		}
		return
	}
	if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == runFolder && e.IsDir() }) {
		return
	}
	for _, e := range list {
		p := e.Name()
		if f.path != "" {
			p = f.path + "/" + p
		}
		switch {
		case unfit(e.Name()):
			t.problems = append(t.problems, strconv.Quote(p)+" is left out: no file can be named so in a plan (want UTF-8 "+
				"without control characters, backslashes and ${)")
		case !e.IsDir():
			f.files = append(f.files, &file{path: p, in: f, link: e.Type()&fs.ModeSymlink != 0})
		case !slices.Contains(t.skip, e.Name()):
			f.dirs = append(f.dirs, &folder{path: p, above: f})
		}
	}
}

// unfit reports whether a name is none that the nodes behind a scan could take as it is.
func unfit(name string) bool {
	return !utf8.ValidString(name) || strings.Contains(name, "${") || strings.Contains(name, `\`) ||
		strings.ContainsFunc(name, unicode.IsControl)
}

// reason is an error without the path, which is said already.
func reason(err error) string {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// A pattern is one taken apart.
type pattern struct {
	up    int // leading ../
	parts []part
}

type part struct {
	text   string
	any    bool // **
	plain  bool // it stands for itself
	suffix bool // *TEXT
}

func newPattern(p string) (out pattern) {
	out.up, p = up(p)
	for _, e := range strings.Split(p, "/") {
		x := part{text: e, any: e == "**", plain: !glob.Is(e)}
		if rest, ok := strings.CutPrefix(e, "*"); ok && !x.any && !glob.Is(rest) {
			x.text, x.suffix = rest, true
		}
		out.parts = append(out.parts, x)
	}
	return out
}

func (p *part) matches(name string) bool {
	switch {
	case p.plain:
		return name == p.text
	case p.suffix:
		return strings.HasSuffix(name, p.text)
	}
	return glob.Match(p.text, name)
}

// find calls found for every file below f that the parts of a pattern match, some of them perhaps more than once.
// enter says whether a folder is looked into.
func (t *tree) find(f *folder, parts []part, enter func(*folder) bool, found func(*file)) {
	t.list(f)
	last := len(parts) == 1
	if parts[0].any {
		for _, d := range f.dirs {
			if enter(d) {
				t.find(d, parts, enter, found)
			}
		}
		if !last {
			t.find(f, parts[1:], enter, found)
			return
		}
	}
	if last {
		for _, x := range f.files {
			if parts[0].any || parts[0].matches(path.Base(x.path)) {
				found(x)
			}
		}
		return
	}
	if parts[0].any {
		return
	}
	for _, d := range f.dirs {
		if parts[0].matches(path.Base(d.path)) && enter(d) {
			t.find(d, parts[1:], enter, found)
		}
	}
}

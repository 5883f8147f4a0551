package scan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/internal/glob"
	"dagrun.dev/internal/regular"
)

// A tree is the folder that is looked through, as it is while one scan looks. A folder is read once, when it is first
// asked for.
type tree struct {
	dir   string // absolute
	root  *os.Root
	skip  []string
	began time.Time // by the clock of the files
	fresh bool      // something was found that is to be remembered
	walks int       // how often folders were gone through to any depth

	mu       sync.Mutex
	problems []string // folders that could not be read
}

// A folder below the root.
type folder struct {
	path   string // from the root; "" = the root
	above  *folder
	listed bool
	dirs   []folder // by name
	files  []file   // by name
	home   int      // the number of the item whose folder this is
	walk   int      // the last walk of the tree that came by
}

// A file of a folder, of any type but a folder.
type file struct {
	path string // from the root
	in   *folder
	link bool
	of   int // the number of the last item that has taken it; -1: it is an item itself

	was    *entry // what is remembered of it; nil: nothing
	asked  bool   // it is to be looked at
	seen   bool   // it has been, and what follows is known
	stamp  stamp
	digest string // empty: not read yet
	err    error
	same   bool // what is remembered of it is still true
	sure   bool // what is known of it will be true as long as its stamp is
}

// runFolder is what a folder of a run holds: what nodes write is no item.
const runFolder = "_orchestrator"

// list reads those of some folders that have not been read, several at once.
func (t *tree) list(ctx context.Context, folders []*folder) {
	var unread []*folder
	for _, f := range folders {
		if !f.listed {
			unread = append(unread, f)
		}
	}
	parallel(len(unread), func(i int) {
		if ctx.Err() == nil {
			t.readFolder(unread[i])
		}
	})
}

func (t *tree) readFolder(f *folder) {
	f.listed = true
	list, err := os.ReadDir(filepath.Join(t.dir, filepath.FromSlash(f.path)))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) || f.above == nil { // or it has gone meanwhile
			t.tell("the folder " + path.Join(".", f.path) + " cannot be read: " + reason(err))
		}
		return
	}
	if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == runFolder && e.IsDir() }) {
		return
	}
	dirs := 0
	for _, e := range list {
		if e.IsDir() {
			dirs++
		}
	}
	f.dirs, f.files = make([]folder, 0, dirs), make([]file, 0, len(list)-dirs)
	for _, e := range list {
		p := e.Name()
		if f.path != "" {
			p = f.path + "/" + p
		}
		switch {
		case unfit(e.Name()):
			t.tell(strconv.Quote(p) + " is left out: no file can be named so in a plan (want UTF-8 " +
				"without control characters, backslashes and ${)")
		case !e.IsDir():
			f.files = append(f.files, file{path: p, in: f, link: e.Type()&fs.ModeSymlink != 0})
		case !slices.Contains(t.skip, e.Name()):
			f.dirs = append(f.dirs, folder{path: p, above: f})
		}
	}
}

func (t *tree) tell(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, text)
}

// parallel calls do for each of n, from several goroutines where there is enough to do.
func parallel(n int, do func(i int)) {
	const share = 32
	var next atomic.Int64
	work := func() {
		for {
			to := int(next.Add(share))
			if to-share >= n {
				return
			}
			for i := to - share; i < min(to, n); i++ {
				do(i)
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0)-1, n/share) {
		others.Go(work)
	}
	work()
	others.Wait()
}

// unfit reports whether a name is none that the nodes behind a scan could take as it is.
func unfit(name string) bool {
	return !utf8.ValidString(name) || strings.Contains(name, "${") || strings.Contains(name, `\`) ||
		strings.ContainsFunc(name, unicode.IsControl)
}

// reason is an error without the path, which is said already.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
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

// base is the name of a path.
func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// find calls found for every file below a folder that the parts of a pattern match. enter says whether a folder is
// looked into.
func (t *tree) find(ctx context.Context, f *folder, parts []part, enter func(*folder) bool, found func(*file)) {
	from := []*folder{f}
	for i, p := range parts {
		t.list(ctx, from)
		if p.any {
			from = t.below(ctx, from, enter)
		}
		if i == len(parts)-1 {
			for _, f := range from {
				for j := range f.files {
					if p.any || p.matches(base(f.files[j].path)) {
						found(&f.files[j])
					}
				}
			}
			return
		}
		if p.any {
			continue
		}
		var next []*folder
		for _, f := range from {
			for j := range f.dirs {
				if d := &f.dirs[j]; p.matches(base(d.path)) && enter(d) {
					next = append(next, d)
				}
			}
		}
		from = next
	}
}

// beside returns the file that a path leads to from the folder of another, whose name takes the place of *. It may be
// missing.
func (t *tree) beside(ctx context.Context, of *file, name string) *file {
	n, name := up(strings.ReplaceAll(name, "*", base(of.path)))
	in := of.in.upward(n)
	if in == nil {
		return &file{path: path.Join(path.Dir(of.path), strings.Repeat("../", n), name), in: of.in, seen: true,
			err: errors.New("leads out of the folder that is looked through")}
	}
	missing := &file{path: path.Join(in.path, name), in: of.in, seen: true, err: fs.ErrNotExist}
	dir, name := path.Split(name)
	for _, part := range strings.FieldsFunc(dir, func(r rune) bool { return r == '/' }) {
		t.list(ctx, []*folder{in})
		i, found := slices.BinarySearchFunc(in.dirs, part, func(d folder, name string) int {
			return strings.Compare(base(d.path), name)
		})
		if !found {
			return missing
		}
		in = &in.dirs[i]
	}
	t.list(ctx, []*folder{in})
	i, found := slices.BinarySearchFunc(in.files, name, func(f file, name string) int {
		return strings.Compare(base(f.path), name)
	})
	if !found {
		return missing
	}
	return &in.files[i]
}

// below returns folders with all that are in them to any depth, each of them once and read.
func (t *tree) below(ctx context.Context, from []*folder, enter func(*folder) bool) (all []*folder) {
	t.walks++
	for level := from; len(level) > 0; {
		t.list(ctx, level)
		var next []*folder
		for _, f := range level {
			if f.walk == t.walks {
				continue // it is below another one
			}
			f.walk = t.walks
			all = append(all, f)
			for j := range f.dirs {
				if d := &f.dirs[j]; enter(d) {
					next = append(next, d)
				}
			}
		}
		level = next
	}
	return all
}

// known looks at a file, once.
func (t *tree) known(f *file) *file {
	if f.seen {
		return f
	}
	f.seen = true
	name := filepath.FromSlash(f.path)
	if f.link {
		var info fs.FileInfo
		if info, f.err = regular.StatIn(t.root, name); f.err == nil {
			f.stamp = stampOf(info)
		}
	} else {
		f.stamp, f.err = stampAt(t.dir + string(filepath.Separator) + name)
	}
	if f.err != nil {
		return f
	}
	f.sure = f.stamp.settled(t.began)
	if f.same = f.was != nil && f.sure && f.was.stamp == f.stamp; f.same {
		f.digest = f.was.digest
	}
	return f
}

// entry is what is to be remembered of a file.
func (f *file) entry() entry {
	switch {
	case !f.seen && f.was != nil:
		return *f.was // nobody asked: it is held to its stamp when somebody does
	case f.sure && f.err == nil:
		return entry{f.path, f.stamp, f.digest}
	}
	return entry{path: f.path}
}

// read digests the content and returns the beginning of it, up to most bytes and one more.
func (t *tree) read(f *file, most int64) (begin []byte) {
	t.fresh = t.fresh || f.sure
	r, err := regular.OpenIn(t.root, filepath.FromSlash(f.path))
	if err != nil {
		f.err = err
		return nil
	}
	defer r.Close()
	h := sha256.New()
	both := io.TeeReader(r, h)
	if begin, f.err = io.ReadAll(io.LimitReader(both, most+1)); f.err == nil {
		_, f.err = io.Copy(io.Discard, both)
	}
	if f.err != nil {
		return nil
	}
	f.digest = hex.EncodeToString(h.Sum(nil))
	if info, err := r.Stat(); err != nil || stampOf(info) != f.stamp { // it was changed meanwhile
		f.sure = false
	}
	return begin
}

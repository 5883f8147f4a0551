package exec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/credential"
	"dagrun.dev/nodes/internal/jsonscan"
	"dagrun.dev/nodes/internal/proc"
	"dagrun.dev/nodes/internal/shape"
)

const (
	outputsFile = "outputs.json"
	mostOutputs = 16 << 20 // bytes; values travel in events, whose lines have 64 MiB at most
)

// prepare lays out what the command needs and says what to start, its input aside.
func (s *settings) prepare(t *nodes.Task) (spec *proc.Spec, err error) {
	set := map[string]string{
		"DAGRUN_OUT": t.Out, "DAGRUN_NODE": t.Node, "TMPDIR": t.Scratch,
		"DAGRUN_GENERATION": strconv.Itoa(t.Generation), "DAGRUN_SEED": strconv.FormatInt(t.Seed, 10),
	}
	for name, raw := range s.Env {
		set[name] = accept.Plain(raw)
	}
	for name, secret := range s.Secrets {
		if set[name], err = t.Secret(secret); err != nil {
			return nil, err
		}
	}
	if t.Reads != nil {
		set["DAGRUN_IN"] = filepath.Join(t.Scratch, "in")
		if err := s.layOut(t, set["DAGRUN_IN"]); err != nil {
			return nil, err
		}
	}
	if len(s.Pass) > 0 { // what every child gets is no secret, and what env sets stands in the specification for all
		credential.MaskEnv(t, proc.Environ(s.Pass, nil))
	}
	spec = &proc.Spec{
		Argv: s.Argv, Dir: s.folder(t), Env: proc.Environ(s.Pass, set), Spool: t.Out,
		Grace: t.Grace, Silence: t.Silence, Limits: s.Limits,
		MostOutput: s.MaxOutputMB << 20,
	}
	if s.Script != "" {
		spec.Argv = append(slices.Clone(s.Shell.words()), s.Script)
	}
	if t.Silence > 0 {
		spec.Beat = t.Beat
	}
	return spec, nil
}

// openStdin returns a file with what the command reads.
func openStdin(t *nodes.Task, in *accept.From) (*os.File, error) {
	from, err := in.Open(t)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return proc.Input(t.Scratch, from)
}

// layOut puts copies of what the node reads into a folder. What has not been written is left out.
func (s *settings) layOut(t *nodes.Task, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range t.Reads {
		var err error
		if strings.HasSuffix(name, "/") {
			err = layOutFolder(t, root, name)
		} else if err = layOutFile(t, root, name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	for _, name := range s.Started {
		if err := root.Chmod(filepath.FromSlash(name), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func layOutFile(t *nodes.Task, root *os.Root, name string) error {
	from, err := t.Artifact(name)
	if err != nil {
		return err
	}
	defer from.Close()
	return nodes.Put(root, name, from)
}

// layOutFolder puts a copy of a folder below root. One that has not been written is left out.
func layOutFolder(t *nodes.Task, root *os.Root, name string) error {
	list, err := t.Folder(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = root.MkdirAll(strings.TrimSuffix(name, "/"), 0o700)
	}
	if err != nil {
		return err
	}
	for _, p := range list {
		if strings.HasSuffix(p, "/") {
			if err := root.MkdirAll(strings.TrimSuffix(name+p, "/"), 0o700); err != nil {
				return err
			}
			continue
		}
		if err := layOutFile(t, root, name+p); err != nil {
			return err
		}
	}
	return nil
}

// collect takes artifacts and values out of the staging folder.
func (s *settings) collect(t *nodes.Task, p *proc.Result, res *nodes.Result) error {
	nothing := len(t.Writes)+len(t.Outputs) == 0 && s.Stdout == ""
	var list []os.DirEntry
	if t.Untouched == nil || !t.Untouched() {
		info, err := os.Lstat(t.Out)
		gone := err != nil || !info.IsDir()
		if gone && nothing {
			return nil
		}
		if gone {
			return nodes.Permanent(nodes.Fail("no_artifact", "the command removed $DAGRUN_OUT or put something else in its "+
				"place: write into the folder and leave it where it is"))
		}
		if list, err = os.ReadDir(t.Out); err != nil {
			return err
		}
	}
	if nothing && len(list) == 0 {
		return nil // most commands leave nothing
	}
	root, err := os.OpenRoot(t.Out)
	if err != nil {
		return err
	}
	defer root.Close()
	if s.Stdout != "" {
		if err := nodes.Put(root, s.Stdout, p.Stdout.Open()); err != nil {
			return fmt.Errorf("artifact %s: %w", s.Stdout, err)
		}
	}
	if len(t.Writes) > 0 {
		res.Writes, res.Schemas = make(map[string]string, len(t.Writes)), map[string]string{}
	}
	for _, name := range t.Writes {
		if err := staged(root, name, s.folder(t), p.LastWords); err != nil {
			return err
		}
		res.Writes[name] = name
	}
	for i := range s.Shapes {
		if err := s.Shapes[i].hold(root, res); err != nil {
			return err
		}
	}
	undeclared(list, t, res)
	res.Values, err = s.values(root, t, p, res)
	return err
}

// Salvage looks for files and values in $DAGRUN_OUT.
func (s *settings) Salvage(t *nodes.Task, files, outputs []string) *nodes.Result {
	res := &nodes.Result{Writes: map[string]string{}, Schemas: map[string]string{}, Values: map[string]any{}}
	left := func(name string, err error) { res.Warnings = append(res.Warnings, name+": "+err.Error()) }
	root, err := os.OpenRoot(t.Out)
	if err != nil {
		left(t.Out, err)
		return res
	}
	defer root.Close()
	for _, name := range files {
		err := staged(root, name, s.folder(t), func() string { return "" })
		for i := 0; i < len(s.Shapes) && err == nil; i++ {
			if s.Shapes[i].Of == name {
				err = s.Shapes[i].hold(root, res)
			}
		}
		if err != nil {
			left(name, err)
			continue
		}
		res.Writes[name] = name
	}
	all, err := readValues(root, res)
	for _, name := range outputs {
		switch v, there := all[name]; {
		case err != nil:
			left(name, err)
		case there:
			res.Values[name] = v
		default:
			left(name, noValue(name))
		}
	}
	return res
}

// folder is where the command starts.
func (s *settings) folder(t *nodes.Task) string {
	dir := cmp.Or(s.Dir, t.SpecDir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(t.SpecDir, dir)
	}
	return dir
}

// staged says why an artifact cannot be taken out of the staging folder. started is the folder that the command started
// in, words are its last ones.
func staged(root *os.Root, name, started string, words func() string) error {
	folder := strings.HasSuffix(name, "/")
	info, err := root.Lstat(strings.TrimSuffix(name, "/"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text := "the command did not put " + name + " into $DAGRUN_OUT"
		if _, err := os.Lstat(filepath.Join(started, name)); err == nil {
			text += fmt.Sprintf("; %s stands in the folder that it started in: write to \"$DAGRUN_OUT/%s\"", name, name)
		}
		e := nodes.Fail("no_artifact", text)
		e.Diagnostics = words()
		return e
	case err != nil:
		return &nodes.Error{Category: "no_artifact", Message: "artifact " + name, Err: err}
	case folder && !info.IsDir():
		return nodes.Permanent(nodes.Failf("no_artifact", "%s in $DAGRUN_OUT is not a folder", name))
	case !folder && info.IsDir():
		return nodes.Permanent(nodes.Failf("no_artifact", "%s in $DAGRUN_OUT is a folder: name it %s/ in writes", name, name))
	case !folder && !info.Mode().IsRegular():
		return nodes.Permanent(nodes.Failf("no_artifact", "%s in $DAGRUN_OUT is not a regular file", name))
	}
	return nil
}

// mostShaped bounds an artifact that is held to a shape, in bytes.
const mostShaped = 4 << 20

// hold holds an artifact in the staging folder to its shape, and notes the name of that.
func (x *shaped) hold(root *os.Root, res *nodes.Result) error {
	sh, problems := shape.Read(x.Schema)
	if len(problems) > 0 {
		return nodes.Permanent(nodes.Fail("config", "shapes: "+problems[0].Text))
	}
	raw, err := regular.ReadIn(root, x.Of, mostShaped)
	if err == nil {
		_, err = sh.Parse(raw, x.Of)
	}
	if err != nil {
		return nodes.Fail("protocol", printable.Clip(err.Error(), 300))
	}
	if x.Name != "" {
		res.Schemas[x.Of] = x.Name
	}
	return nil
}

// undeclared warns of files at the top of the staging folder that nothing will come of.
func undeclared(list []os.DirEntry, t *nodes.Task, res *nodes.Result) {
	var names []string
	for _, entry := range list {
		name := entry.Name()
		belongs := func(w string) bool { return w == name || strings.HasPrefix(w, name+"/") }
		if name != outputsFile && !slices.ContainsFunc(t.Writes, belongs) {
			names = append(names, strconv.Quote(name))
		}
	}
	if len(names) > 0 {
		res.Warnings = append(res.Warnings,
			"what the command put into $DAGRUN_OUT is dropped where `writes` does not name it: "+printable.Some(names, 10))
	}
}

// values reads outputs.json, and the lines that are a value. Every declared value must be there unless its type says
// otherwise; the host checks the types.
func (s *settings) values(
	root *os.Root, t *nodes.Task, p *proc.Result, res *nodes.Result,
) (map[string]any, error) {
	all, err := readValues(root, res)
	if err == nil && s.Lines != "" {
		all, err = withLines(all, s.Lines, p.Stdout)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(t.Outputs)) {
		v, there := all[name]
		optional := strings.HasSuffix(t.Outputs[name], "?")
		if optional && string(v) == "null" {
			delete(all, name) // it is no value
		}
		if !there && !optional {
			return nil, noValue(name)
		}
	}
	out := make(map[string]any, len(all))
	for name, v := range all {
		out[name] = v
	}
	return out, nil
}

// withLines adds the lines that were printed as a value.
func withLines(all map[string]json.RawMessage, name string, printed *proc.Capture) (map[string]json.RawMessage, error) {
	if _, twice := all[name]; twice {
		return nil, nodes.Failf("protocol", "%s takes the lines that are printed, and is in %s too", name, outputsFile)
	}
	if printed.Size() > mostOutputs {
		return nil, nodes.Failf("protocol", "the lines of %s are longer than 16 MiB; put large things into artifacts", name)
	}
	text, err := io.ReadAll(printed.Open())
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, nodes.Failf("protocol", "the lines of %s are not UTF-8", name)
	}
	lines := []string{}
	if len(text) > 0 {
		lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	raw, err := json.Marshal(lines)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	all[name] = raw
	return all, err
}

func noValue(name string) error {
	return nodes.Failf("protocol", "the declared output %s is not in $DAGRUN_OUT/%s", name, outputsFile)
}

// readValues reads outputs.json, its values as they are written: the host says what cannot be kept.
func readValues(root *os.Root, res *nodes.Result) (all map[string]json.RawMessage, err error) {
	b, err := regular.ReadIn(root, outputsFile, mostOutputs)
	pe, ok := errors.AsType[*fs.PathError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case ok && pe.Op == "read":
		err = fmt.Errorf("%w; put large things into artifacts", pe.Err)
	case ok:
		err = pe.Err // the path is known
	}
	if err != nil {
		return nil, nodes.Failf("protocol", "%s: %v", outputsFile, err)
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, nodes.Failf("protocol", "%s is not a JSON object: %v", outputsFile, err)
	}
	var odd jsonscan.Oddities
	odd.Look(b)
	for _, oddity := range odd.Warnings("") {
		res.Warnings = append(res.Warnings, outputsFile+": "+oddity)
	}
	return all, nil
}

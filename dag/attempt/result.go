package attempt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/folder"
	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
)

// take holds a result to what the node declares, and stores its artifacts and entries.
func (t *trial) take(res *nodes.Result) error {
	if err := t.values(res); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(res.Writes)) {
		o, err := t.store(res, name)
		if err != nil {
			return err
		}
		t.rep.Artifacts = append(t.rep.Artifacts, o)
	}
	return t.storeEntries(res)
}

// values gathers what of a result goes into the event that records it, masked. The error says that the values
// are not what the node declares.
func (t *trial) values(res *nodes.Result) error {
	b := &t.rep.Outcome.Body
	b.Usage = machine.Usage(res.Usage)
	if !t.other.Load() {
		b.Fingerprint = t.job.Fingerprint
	}
	for _, w := range res.Warnings {
		b.Warnings = append(b.Warnings, t.line(w))
	}
	for _, s := range res.Survivors {
		b.Warnings = append(b.Warnings, t.line("still running after everything was tried: "+s))
	}
	for _, n := range res.Notes {
		raw, err := json.Marshal(n.Fields)
		if err != nil {
			return nodes.Fail("protocol", "note "+n.Type+": "+err.Error())
		}
		b.Notes = append(b.Notes, machine.LogLine{Log: n.Log, Type: n.Type, Fields: t.worker.Mask.JSON(raw)})
	}
	if t.job.Purpose == Undo || len(res.Values) == 0 {
		return nil // of an undo nobody reads them
	}
	for _, name := range slices.Sorted(maps.Keys(res.Values)) { // for the order of warnings
		if _, declared := t.job.Node.Outputs[name]; !declared {
			b.Warnings = append(b.Warnings, t.line("value "+name+" is not declared in outputs and was dropped"))
			continue
		}
		kept, err := t.value(name, res.Values[name])
		if err != nil {
			return err
		}
		if b.Values == nil {
			b.Values = make(map[string]json.RawMessage, len(res.Values))
		}
		b.Values[name] = kept
	}
	return nil
}

// value is a declared value as it is recorded, masked.
func (t *trial) value(name string, v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, nodes.Fail("protocol", "value "+name+": "+err.Error())
	}
	want, _ := dag.OutputType(t.job.Node.Outputs[name])
	raw = t.worker.Mask.JSON(raw)
	kept, err := dag.KeptValue(raw)
	if err != nil {
		return nil, nodes.Fail("protocol", "value "+name+" cannot be kept: "+err.Error())
	}
	if !hasType(raw, want) {
		return nil, nodes.Fail("protocol",
			fmt.Sprintf("value %s is declared as %s and is %s", name, want, printable.Clip(string(raw), 40)))
	}
	if want == "number" && kept[0] == '"' { // as integers beyond 2^53 are kept, and expressions read doubles
		return nil, nodes.Fail("protocol", fmt.Sprintf(
			"value %s cannot be kept: %s is more than a number holds exactly: declare it as int", name, raw))
	}
	return kept, nil
}

// salvage looks for what is whole of what a failed attempt has left.
func (t *trial) salvage() {
	kind, _ := t.worker.Kinds.Kind(t.job.Kind)
	by, able := nodes.Able[nodes.Salvager](kind, t.task.With)
	want := t.job.Node.Salvage
	if !able || t.job.Purpose != Run {
		return
	}
	out := &Salvaged{Values: map[string]json.RawMessage{}}
	t.rep.Salvaged = out
	res := by.Salvage(t.task, want.Files, want.Outputs)
	for _, w := range res.Warnings {
		out.Left = append(out.Left, t.line(w))
	}
	left := func(name string, err error) { out.Left = append(out.Left, t.line(name+": "+err.Error())) }
	for _, name := range want.Files {
		if _, there := res.Writes[name]; !there {
			continue
		}
		o, err := t.store(res, name)
		if err != nil {
			left(name, err)
			continue
		}
		out.Artifacts = append(out.Artifacts, o)
	}
	for _, name := range want.Outputs {
		v, there := res.Values[name]
		if !there {
			continue
		}
		kept, err := t.value(name, v)
		if err != nil {
			left(name, err)
			continue
		}
		out.Values[name] = kept
	}
}

// hasType reports whether a JSON value is of a declared type.
func hasType(raw json.RawMessage, want string) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return want == "string"
	case bool:
		return want == "bool"
	case float64:
		whole := v == math.Trunc(v) && v >= -1<<63 && v < 1<<63
		if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			whole = true // as written
		}
		return want == "number" || want == "int" && whole
	case []any:
		return want == "list"
	case map[string]any:
		return want == "map"
	}
	return false
}

// store stores a staged artifact of a result after checking that the node may write it and that it is a regular file
// of this attempt.
func (t *trial) store(res *nodes.Result, name string) (o Object, err error) {
	path := res.Writes[name]
	if t.job.Purpose != Undo && !slices.Contains(t.job.Node.Writes, name) {
		return o, nodes.Permanent(nodes.Fail("config", "the node wrote "+name+", which its writes do not name"))
	}
	if !filepath.IsLocal(path) {
		return o, nodes.Permanent(nodes.Fail("config", "the file of "+name+" lies outside the staging folder: "+path))
	}
	abs := filepath.Join(t.world.Out(), path)
	if dag.IsFolder(name) {
		o, err = t.storeFolder(name, abs)
	} else {
		o, err = t.storeFile(name, abs)
	}
	o.Schema = res.Schemas[name]
	return o, err
}

// storeFolder stores the files of a folder and then the list of them, which stands for it.
func (t *trial) storeFolder(name, abs string) (o Object, err error) {
	switch st, err := os.Lstat(abs); {
	case errors.Is(err, fs.ErrNotExist):
		return o, nodes.Fail("no_artifact", "the node did not leave the folder "+name)
	case err != nil:
		return o, err
	case !st.IsDir():
		return o, nodes.Permanent(nodes.Fail("config", name+" is not a folder"))
	}
	m, err := folder.Walk(
		func(dir string) ([]fs.DirEntry, error) {
			return os.ReadDir(filepath.Join(abs, filepath.FromSlash(dir)))
		},
		func(p string) (string, int64, error) {
			f, err := t.storeFile(name+p, filepath.Join(abs, filepath.FromSlash(p)))
			return f.Digest, f.Size, err
		})
	if refused, ok := errors.AsType[*folder.Refused](err); ok {
		return o, nodes.Permanent(nodes.Fail("no_artifact", "in the folder "+name+", "+refused.Error()))
	}
	if err != nil {
		return o, err
	}
	o = Object{Name: name, Size: m.Size()}
	o.Digest, _, err = t.world.Store(bytes.NewReader(m.Encode()))
	return o, err
}

func (t *trial) storeFile(name, abs string) (o Object, err error) {
	st, err := os.Lstat(abs)
	if err != nil {
		return o, nodes.Fail("no_artifact", "the node did not leave "+name)
	}
	if !st.Mode().IsRegular() {
		return o, nodes.Permanent(nodes.Fail("config", name+" is not a regular file"))
	}
	if err := t.worker.Mask.File(abs); err != nil {
		return o, err
	}
	f, err := regular.Open(abs)
	if err != nil {
		return o, err
	}
	defer f.Close()
	o.Name = name
	o.Digest, o.Size, err = t.keepObject(f)
	return o, err
}

// keepObject stores what is to become part of the run, on the room that is held back for it if need be.
func (t *trial) keepObject(from io.ReadSeeker) (digest string, size int64, err error) {
	digest, size, err = t.world.Store(from)
	if err != nil && t.world.Yield() {
		if _, err := from.Seek(0, io.SeekStart); err != nil {
			return "", 0, err
		}
		digest, size, err = t.world.Store(from)
	}
	if err != nil {
		return "", 0, &disk.Refused{Err: err}
	}
	return digest, size, nil
}

func (t *trial) storeEntries(res *nodes.Result) error {
	for _, e := range res.Entries {
		raw, err := dag.AppendJSON(nil, nodes.Entry{
			Accumulator: e.Accumulator, Text: t.worker.Mask.Text(e.Text), Meta: t.worker.Mask.Texts(e.Meta),
		})
		if err != nil {
			return err
		}
		o := Object{Name: e.Accumulator}
		if o.Digest, o.Size, err = t.keepObject(bytes.NewReader(raw)); err != nil {
			return err
		}
		t.rep.Entries = append(t.rep.Entries, o)
	}
	return nil
}

// cost says what an attempt cost and how that is known: as the kind reports, else by the price table, else
// the reservation stands, but no less than the part that was reported. What never started, and what a
// service refused, costs nothing. Of an attempt that is lost the usage is what is known of it: there may
// have been more.
func (t *trial) cost(res *nodes.Result, err error) (dag.USD, dag.CostKind) {
	e, failed := errors.AsType[*nodes.Error](err)
	if res.CostUSD != nil {
		usd, bad := dag.Dollars(*res.CostUSD)
		switch {
		case bad == nil && usd == 0 && err != nil && res.Usage == (nodes.Usage{}):
			return 0, dag.CostFree
		case bad == nil && usd >= 0:
			return usd, dag.CostReported
		}
	}
	least, bad := dag.Dollars(res.LeastUSD)
	if bad != nil {
		least = 0
	}
	if res.Usage != (nodes.Usage{}) {
		usd, ok := t.priced(res)
		usd = max(usd, least)
		switch {
		case ok && failed && e.Category == machine.CategoryLost:
			return usd, dag.CostAssumed
		case ok:
			return usd, dag.CostPriced
		}
	}
	switch {
	case t.job.Reserve == (dag.Amount{}):
		return 0, ""
	case err != nil && t.job.Purpose == Run && !t.begun.Load():
		return 0, dag.CostFree
	case failed && (e.Category == "config" || e.Category == "spawn_failed"):
		return 0, dag.CostFree
	}
	return max(t.job.Reserve.USD, least), dag.CostAssumed
}

// priced applies the price table to the model that answered, else to the one that the settings name: some
// names only the provider uses.
func (t *trial) priced(res *nodes.Result) (dag.USD, bool) {
	models := []string{res.Model, ""}
	if p := t.worker.traits(t.job).Prompt; p != nil {
		models[1] = p.Model
	}
	for _, model := range models {
		if model == "" {
			continue
		}
		if p, ok := dag.PriceOf(t.job.Prices, model); ok {
			return p.Cost(dag.Usage(res.Usage)), true
		}
	}
	return 0, false
}

// Package scan is the kind of node that looks through files, works out what each of them is due, and picks what is
// owed most. It writes nothing but what it remembers of files for the next scan (see memory).
//
// It knows nothing of what the files mean: that stands in the expressions of the settings, which the host compiles.
package scan

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"dagrun.dev/nodes"
)

//go:embed schema.cue
var schema string

// Kind is the kind "scan".
var Kind = nodes.Kind{Name: "scan", Schema: schema, Parse: read}

// Run looks once.
func (s *settings) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	f, err := s.look(ctx, t)
	if err != nil {
		return nil, err
	}
	f.keep()
	res := &nodes.Result{Values: map[string]any{
		"items": f.recorded, "total": len(f.items), "owed": f.owed, "problems": len(f.problems), "counts": f.counts,
		"now": t.Now.UTC().Format(time.RFC3339Nano),
	}}
	res.Warnings = slices.Clone(f.problems[:min(len(f.problems), mostTold)])
	if more := len(f.problems) - mostTold; more > 0 {
		res.Warnings = append(res.Warnings, fmt.Sprintf("and %d more", more))
	}
	return res, nil
}

// keep writes down for the next scan what this one has found out.
func (f *finding) keep() {
	if !f.tree.fresh {
		return
	}
	f.memory.keep(encode(f.memory.about, len(f.items), func(i int) (record, []entry) {
		return f.remembered(f.items[i])
	}))
}

// Preview says what would be picked now.
func (s *settings) Preview(ctx context.Context, t *nodes.Task) (lines []string, err error) {
	f, err := s.look(ctx, t)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("now: %d of %d owed", f.owed, len(f.items))
	if len(f.problems) > 0 {
		text += fmt.Sprintf(", %d with problems (%s)", len(f.problems), f.problems[0])
	}
	lines = append(lines, text)
	for _, it := range f.picked[:min(len(f.picked), mostTold)] {
		text := "now: picks " + f.shown(it.file.path)
		for i, name := range f.names {
			if raw, err := json.Marshal(it.values[i]); err == nil && len(raw) <= 60 {
				text += fmt.Sprintf(" %s=%s", name, raw)
			}
		}
		lines = append(lines, text)
	}
	if more := len(f.picked) - mostTold; more > 0 {
		lines = append(lines, fmt.Sprintf("now: picks %d more", more))
	}
	return lines, nil
}

const (
	mostTold   = 20        // problems that are told one by one
	mostItems  = 1_000_000 // that one scan looks at
	mostCounts = 1_000     // values of count
)

// A finding is what a scan has found.
type finding struct {
	*evaluation
	items    []*item // by path
	owed     int
	picked   []*item // most owed first
	recorded []any   // those, as they are recorded
	counts   map[string]int
	problems []string
}

// look goes through the files.
func (s *settings) look(ctx context.Context, t *nodes.Task) (*finding, error) {
	e, err := newEvaluation(s, t)
	if err != nil {
		return nil, err
	}
	defer e.tree.root.Close()
	f := &finding{evaluation: e, recorded: []any{}, counts: map[string]int{}}
	if f.items, err = e.discover(ctx); err != nil {
		return nil, err
	}
	var owed []*item
	for i, it := range f.items {
		if i%100 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t.Beat()
		}
		is, value := e.decide(it)
		if s.Count != "" && it.failed == "" {
			f.counts[value]++
		}
		if is {
			owed = append(owed, it)
		}
	}
	if len(f.counts) > mostCounts {
		return nil, nodes.Permanent(nodes.Failf("config", "count has more than %d different values", mostCounts))
	}
	f.owed = len(owed)
	slices.SortFunc(owed, e.byOrder)
	f.picked = owed[:min(len(owed), s.Take)]
	for _, it := range f.picked {
		f.recorded = append(f.recorded, e.record(it))
	}
	for _, it := range f.items {
		if text := cmp.Or(it.failed, it.problem); text != "" {
			text = strings.TrimPrefix(text, it.file.path+": ") // most are about that file
			f.problems = append(f.problems, e.shown(it.file.path)+": "+text)
		}
	}
	f.problems = append(f.problems, e.tree.problems...)
	return f, nil
}

// discover returns the items by path, each with its content.
func (e *evaluation) discover(ctx context.Context) (items []*item, err error) {
	all := func(*folder) bool { return true }
	e.tree.find(ctx, e.top, newPattern(e.s.Items).parts, all, func(f *file) {
		if f.of == 0 {
			f.of = -1
			items = append(items, &item{file: f, own: f})
		}
	})
	if e.missing() {
		return nil, nodes.Permanent(nodes.Failf("file_io", "the folder %s cannot be read", e.tree.dir))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(items) > mostItems {
		return nil, nodes.Permanent(nodes.Failf("config", "items matches more than %d files", mostItems))
	}
	if e.s.Meta != "" {
		for _, it := range items {
			it.own = e.tree.beside(ctx, it.file, e.s.Meta)
		}
	}
	// As they are remembered.
	slices.SortFunc(items, func(a, b *item) int { return cmp.Compare(a.own.path, b.own.path) })
	patterns := make([]pattern, len(e.s.Content))
	highest := 0
	for i, p := range e.s.Content {
		patterns[i] = newPattern(p)
		highest = max(highest, patterns[i].up)
	}
	for i, it := range items {
		it.number = i + 1
		if home := it.file.in.upward(highest); home != nil {
			home.home = it.number
		}
	}
	for _, it := range items {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.contentOf(ctx, it, patterns)
	}
	slices.Sort(e.tree.problems)
	e.lookAt(items)
	return items, ctx.Err()
}

// missing reports whether the root itself could not be read.
func (e *evaluation) missing() bool {
	_, err := os.Stat(e.tree.dir)
	empty := len(e.top.dirs)+len(e.top.files) == 0
	return errors.Is(err, fs.ErrNotExist) || !e.top.listed || empty && len(e.tree.problems) > 0
}

// upward is the folder n above.
func (f *folder) upward(n int) *folder {
	for ; n > 0 && f != nil; n-- {
		f = f.above
	}
	return f
}

// contentOf finds the files that belong to an item, by path.
func (e *evaluation) contentOf(ctx context.Context, it *item, patterns []pattern) {
	home := it.file.in
	if it.file.of, it.own.of = it.number, it.number; it.own != it.file {
		it.content = append(it.content, it.file)
	}
	for i, p := range patterns {
		from := home.upward(p.up)
		if from == nil {
			it.problem = fmt.Sprintf("%s leads out of %s", e.s.Content[i], e.tree.dir)
			return
		}
		own := from.home
		enter := func(d *folder) bool { return e.s.Nested || d.home == 0 || d.home == own || d.above == nil }
		e.tree.find(ctx, from, p.parts, enter, func(f *file) {
			if f.of != it.number {
				f.of = it.number
				it.content = append(it.content, f)
			}
		})
	}
	slices.SortFunc(it.content, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
}

package screenshot

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/browser"
)

var _ nodes.Preflighter = &settings{}

// Run takes the pictures once. They are kept only when all of them could be taken.
func (s *settings) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	albums := make([]album, len(s.Viewports))
	job := &browser.Job{
		Source: &s.Source, Settings: &s.Browser, Waits: &s.Waits,
		Viewports: s.Viewports, Scale: s.Scale, Bottom: s.Tile * s.MaxTiles,
		Visit: func(i int, p *browser.Page) error {
			a, err := s.photograph(p, t.Scratch)
			if err != nil {
				return err
			}
			if p.Left() {
				return nodes.Failf("screenshot_failed", "%v: a script left the page while its pictures were taken", p.Viewport)
			}
			albums[i] = *a
			t.Beat()
			return nil
		},
	}
	version, survivors, err := browser.Look(ctx, t, job)
	res := &nodes.Result{Survivors: survivors}
	if err != nil {
		return res, err
	}
	if err := develop(albums, s.Blank); err != nil {
		return res, err
	}
	m := &manifest{Browser: version, Viewports: albums}
	res.Values, res.Warnings = m.values(), m.warnings()
	return res, m.keep(t, s, res)
}

// values are what decisions are made from.
func (m *manifest) values() map[string]any {
	var shots, blanks, run, errs, warnings int
	var share, dpr float64
	degraded := false
	views := map[string]any{}
	for _, a := range m.Viewports {
		shots += len(a.Shots)
		blanks += a.Blanks
		run = max(run, a.LongestBlank)
		share, dpr = max(share, a.BlankShare), max(dpr, a.DPR)
		errs += a.ErrorCount
		warnings += len(a.Warnings)
		degraded = degraded || len(a.Cut) > 0 || len(a.Refused) > 0
		views[a.View.String()] = map[string]any{
			"height": a.Height, "shots": len(a.Shots), "blanks": a.Blanks,
			"maxConsecutiveBlanks": a.LongestBlank, "blankShare": a.BlankShare, "idle": a.Idle,
		}
	}
	return map[string]any{
		"shots": shots, "blanks": blanks, "maxConsecutiveBlanks": run, "maxBlankShare": share, "dpr": dpr,
		"consoleErrors": errs, "warnings": warnings, "degraded": degraded, "browser": m.Browser, "viewports": views,
	}
}

// warnings names each thing once, with the viewports at which it was seen.
func (m *manifest) warnings() []string {
	var texts, out []string
	at := map[string][]string{}
	for _, a := range m.Viewports {
		for _, w := range a.Warnings {
			if !slices.Contains(texts, w) {
				texts = append(texts, w)
			}
			at[w] = append(at[w], a.View.String())
		}
	}
	for _, w := range texts {
		where := ""
		if len(at[w]) < len(m.Viewports) {
			where = strings.Join(at[w], ", ") + ": "
		}
		out = append(out, where+w)
	}
	return out
}

// develop looks at the pictures of all viewports side by side.
func develop(albums []album, blank float64) error {
	errs := make([]error, len(albums))
	var wg sync.WaitGroup
	for i := range albums {
		wg.Go(func() { errs[i] = albums[i].develop(blank) })
	}
	wg.Wait()
	return cmp.Or(errs...)
}

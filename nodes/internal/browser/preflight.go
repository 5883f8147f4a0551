package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"dagrun.dev/nodes"
)

// ownPage shows what a browser can draw here.
const ownPage = `<!DOCTYPE html><meta charset="utf-8"><title>dagrun</title><p>text</p>
<script>document.title = document.createElement("canvas").getContext("webgl") ? "gl" : "no gl"</script>`

// Preflight starts each browser that the settings name, once, and looks at a page of its own with it. It
// fails when a run could not take its pictures, unless that is allowed by missing: degrade. See
// nodes.Preflighter.
func Preflight(ctx context.Context, with []json.RawMessage, specDir, scratch string) (warnings []string, err error) {
	var seen []string
	for _, w := range with {
		s := struct {
			Waits   Waits    `json:"waits"`
			Browser Settings `json:"browser"`
		}{DefaultWaits(), DefaultSettings()}
		if json.Unmarshal(w, &s) != nil {
			continue // it holds a ${...} yet; the attempt itself will fail
		}
		key := fmt.Sprintf("%+v %v", s.Browser, s.Waits.Launch)
		if slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		found, err := check(ctx, &s.Browser, &s.Waits, specDir, scratch)
		warnings = append(warnings, found...)
		if err != nil {
			return warnings, err
		}
	}
	return warnings, nil
}

func check(ctx context.Context, set *Settings, waits *Waits, specDir, scratch string) (warnings []string, err error) {
	t := &nodes.Task{
		SpecDir: specDir, Scratch: scratch, Beat: func(string) {},
		Log: func(_, msg string) { warnings = append(warnings, msg) },
	}
	var rec Record
	version, survivors, err := Look(ctx, t, &Job{
		Source: &Source{own: []byte(ownPage)}, Settings: set, Waits: waits, Scale: 1, Viewports: []Viewport{{800, 600}},
		Visit: func(_ int, p *Page) error {
			rec = p.Record()
			_, err := p.Picture(nil)
			return err
		},
	})
	for _, s := range survivors {
		warnings = append(warnings, "the browser left a process behind: "+s)
	}
	var none *Unavailable
	if errors.As(err, &none) && set.Missing == "degrade" {
		return append(warnings, "no pictures will be taken: "+err.Error()), nil
	}
	if err != nil {
		return warnings, err
	}
	if rec.TextWidth == 0 {
		warnings = append(warnings,
			version+" has no fonts here: all text will be invisible; install some, e.g. fonts-liberation")
	}
	if rec.Title != "gl" {
		warnings = append(warnings,
			version+" does not draw WebGL here; the flag for drawing by software is --enable-unsafe-swiftshader")
	}
	return warnings, nil
}

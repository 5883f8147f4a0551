package browser

import (
	"context"
	"errors"
	"fmt"

	"dagrun.dev/nodes"
)

// ownPage shows what a browser can draw here.
const ownPage = `<!DOCTYPE html><meta charset="utf-8"><title>dagrun</title><p>text</p>
<script>document.title = document.createElement("canvas").getContext("webgl") ? "gl" : "no gl"</script>`

// Needs is the browser that the settings name: it is started once, and looks at a page of its own. It is missing when a
// run could not take its pictures, unless that is allowed by missing: degrade; one that a run would install is not
// installed for it.
func (s *View) Needs() []nodes.Need {
	return []nodes.Need{{
		Name: fmt.Sprintf("browser %+v %v", s.Browser, s.Waits.Launch),
		Find: func(ctx context.Context, m nodes.Machine) (string, []string, error) {
			if _, err := s.Browser.find(m.SpecDir); err != nil && len(s.Browser.Install) > 0 {
				return "", []string{err.Error() + ": it will be installed when the first node needs it"}, nil
			}
			return check(ctx, &s.Browser, &s.Waits, m.SpecDir, m.Scratch)
		},
	}}
}

func check(
	ctx context.Context, set *Settings, waits *Waits, specDir, scratch string,
) (found string, warnings []string, err error) {
	t := &nodes.Task{
		SpecDir: specDir, Scratch: scratch, Beat: func() {},
		Warn: func(msg string) { warnings = append(warnings, msg) },
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
	if _, none := errors.AsType[*Unavailable](err); none && set.Missing == "degrade" {
		return "", append(warnings, "no pictures will be taken: "+err.Error()), nil
	}
	if err != nil {
		return "", warnings, err
	}
	if rec.TextWidth == 0 {
		warnings = append(warnings,
			version+" has no fonts here: all text will be invisible; install some, e.g. fonts-liberation")
	}
	if rec.Title != "gl" {
		warnings = append(warnings,
			version+" does not draw WebGL here; the flag for drawing by software is --enable-unsafe-swiftshader")
	}
	return version, warnings, nil
}

package gates

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/browser"
)

// inBrowser makes the checks that run in the page. What could not be tried stays without measures, with
// the reason.
func (r *runner) inBrowser(ctx context.Context, checks []*result) error {
	var views []browser.Viewport
	for _, x := range checks {
		x.due = r.set.Repeat * len(x.check.Viewports)
		if x.check.File != "" {
			code, err := accept.ReadText(r.task.File, "file", x.check.File)
			if err != nil {
				return err
			}
			x.check.JS = code
		}
		for _, v := range x.check.Viewports {
			if !slices.Contains(views, v) {
				views = append(views, v)
			}
		}
	}
	found := make([]visit, len(views)) // what each viewport gave
	version, survivors, err := browser.Look(ctx, r.task, &browser.Job{
		Source: &r.set.Source, Settings: &r.set.Browser, Waits: &r.set.Waits, Viewports: views, Scale: 1,
		Visit: func(i int, p *browser.Page) error {
			var err error
			found[i], err = r.visit(p, checks)
			return err
		},
	})
	r.browser, r.res.Survivors = version, survivors
	if err != nil && !r.bearable(ctx, err) {
		return err
	}
	for i, x := range checks {
		for _, v := range x.check.Viewports {
			seen := found[slices.Index(views, v)]
			if len(seen) == 0 {
				continue
			}
			x.Results = append(x.Results, seen[i].measures...)
			if seen[i].reason != "" {
				x.Reason = seen[i].reason
			}
		}
		if !x.complete() && x.Reason == "" {
			x.Reason = "the page was left before it"
			if err != nil {
				x.Reason = err.Error()
			}
		}
	}
	return nil
}

// bearable reports whether the checks are merely not run: it is no mistake of the settings, the task was not stopped,
// and a browser may be missing.
func (r *runner) bearable(ctx context.Context, err error) bool {
	if _, none := errors.AsType[*browser.Unavailable](err); none {
		return r.set.Browser.Missing == "degrade"
	}
	e, ok := errors.AsType[*nodes.Error](err)
	return ctx.Err() == nil && ok && e.Category != "config"
}

// A visit holds, for each check, what it gave at one viewport.
type visit []struct {
	measures []measure
	reason   string // why there are none
}

const alive = 2 * time.Second // for a sign of life after a check that hung

// visit makes the checks that belong to the page's viewport, one after the other. What it found is good also when the
// page was lost on the way, which the error says.
func (r *runner) visit(p *browser.Page, checks []*result) (visit, error) {
	found := make(visit, len(checks))
	lost := "" // why nothing can be tried any more
	for i, x := range checks {
		if !slices.Contains(x.check.Viewports, p.Viewport) {
			continue
		}
		for range r.set.Repeat {
			var m *measure
			if lost == "" {
				m, lost = try(p, x.check)
			}
			if m == nil {
				found[i].reason = lost
				break
			}
			m.Viewport = p.Viewport.String()
			found[i].measures = append(found[i].measures, *m)
		}
	}
	return found, p.Gone()
}

// try makes one check in the page. There is no measure where it could not be made; lost says why none can be made any
// more.
func try(p *browser.Page, c *check) (m *measure, lost string) {
	most := c.Timeout.D()
	code, err := wrap(p, c)
	if isException(err) {
		return &measure{Reason: reasonOf(err)}, ""
	}
	if err != nil {
		return nil, reasonOf(err)
	}
	world, late := browser.PageWorld, most
	if c.World != ownWorld {
		world = "check " + c.Name // its own: one check may change for the next one what the page shows, not the language
		late += alive             // the page itself keeps time; this is for loops that do not let it
	}
	v, err := p.Evaluate(code, world, late)
	switch {
	case p.Left(): // what was measured is unknown
		return nil, "the page was left during check " + c.Name + ", or before"
	case isException(err):
		return &measure{Reason: reasonOf(err)}, ""
	case err == nil:
		return c.measure(json.RawMessage(v.Value)), ""
	case p.Gone() != nil:
		return nil, reasonOf(p.Gone())
	case !hung(err): // the event that says so is on its way
		return nil, "the page was left during check " + c.Name + ": " + reasonOf(err)
	}
	if !answers(p) {
		lost = "the page does not answer any more since check " + c.Name
	}
	return &measure{Reason: fmt.Sprintf("gave nothing within %v: a loop that never ends%s", most, orPromise(c))}, lost
}

// orPromise names what looks the same as a loop in the page's own world.
func orPromise(c *check) string {
	if c.World == ownWorld {
		return ", or a promise that never settles"
	}
	return ""
}

func hung(err error) bool {
	e, ok := errors.AsType[*nodes.Error](err)
	return ok && e.Category == "page_hang"
}

// isException reports whether it is the code that is at fault, not the page.
func isException(err error) bool {
	_, is := errors.AsType[*browser.Exception](err)
	return is
}

func answers(p *browser.Page) bool {
	v, err := p.Evaluate("true", "sign of life", alive)
	return err == nil && string(v.Value) == "true"
}

// measure reads what the code gave.
func (c *check) measure(v json.RawMessage) *measure {
	const unreadable = "gave nothing that can be read"
	var got struct {
		Type  string
		Value any
		Notes []string
	}
	if err := json.Unmarshal(v, &got); err != nil {
		return &measure{Reason: unreadable}
	}
	m := measure{}
	switch got.Type {
	case "boolean", "number":
		m = c.judge(got.Value)
	case "timeout":
		m.Reason = fmt.Sprintf("gave nothing within %v: a promise that never settles", c.Timeout.D())
	default:
		m.Reason = "gave " + got.Type + ", not a truth value or a number"
	}
	m.Notes = got.Notes
	return &m
}

// checkJS is a function that runs the code of a check.
//
//go:embed check.js
var checkJS string

// wrap returns an expression that runs the check: its code is an expression if it can be, else the body of a function.
func wrap(p *browser.Page, c *check) (string, error) {
	args, most := cmp.Or(string(c.Args), "{}"), fmt.Sprint(c.Timeout.D().Milliseconds())
	if c.World == ownWorld {
		most = "null" // the page's clock tells nothing; the code is given up from without, a little later
	}
	running := func(body string) string {
		return fmt.Sprintf("(%s)(async (args, note) => {\n%s\n}, %s, %s)", checkJS, body, args, most)
	}
	expression := running("return (\n" + strings.TrimRight(strings.TrimSpace(c.JS), ";") + "\n);")
	err := p.Compile(expression)
	if err == nil || !isException(err) {
		return expression, err
	}
	body := running(c.JS)
	return body, p.Compile(body)
}

// reasonOf says what an error says, in one line.
func reasonOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

package gates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/browser"
)

// inBrowser makes the checks that run in the page. What could not be tried stays without measures, with
// the reason.
func (r *runner) inBrowser(ctx context.Context) error {
	checks := r.of(inPage)
	var views []browser.Viewport
	for _, x := range checks {
		x.due = r.set.Repeat * len(x.check.Viewports)
		if err := r.load(x.check); err != nil {
			return err
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
			found[i] = r.visit(p, checks)
			return nil
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
			x.Reason = notRunBecause(err)
		}
	}
	return nil
}

func notRunBecause(err error) string {
	if err == nil {
		return "the page was left before it"
	}
	return err.Error()
}

// bearable says whether the checks are merely not run: no mistake of the settings, no one who
// stopped the task, and no missing browser where one is insisted on.
func (r *runner) bearable(ctx context.Context, err error) bool {
	var none *browser.Unavailable
	if errors.As(err, &none) {
		return r.set.Browser.Missing == "degrade"
	}
	var e *nodes.Error
	return ctx.Err() == nil && errors.As(err, &e) && e.Category != "config"
}

// load reads the code of a check from its file.
func (r *runner) load(c *check) error {
	if c.File == "" {
		return nil
	}
	f, err := r.task.File(c.File)
	if err != nil {
		return &nodes.Error{Category: "config", Message: "the code of check " + c.Name, Err: err}
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	c.JS = string(b)
	return err
}

// A visit holds, for each check, what it gave at one viewport.
type visit []struct {
	measures []measure
	reason   string // why there are none
}

const alive = 2 * time.Second // for a sign of life after a check that hung

// visit makes the checks that belong to the page's viewport, one after the other.
func (r *runner) visit(p *browser.Page, checks []*result) visit {
	found := make(visit, len(checks))
	stuck := "" // why nothing can be tried any more
	for i, x := range checks {
		if !slices.Contains(x.check.Viewports, p.Viewport) {
			continue
		}
		for range r.set.Repeat {
			if stuck != "" {
				found[i].reason = stuck
				break
			}
			m, hung := measureIn(p, x.check)
			if p.Left() { // nobody knows what was measured
				stuck = "the page was left during check " + x.Name + ", or before"
				found[i].reason = stuck
				break
			}
			m.Viewport = p.Viewport.String()
			found[i].measures = append(found[i].measures, m)
			if hung && !answers(p) {
				stuck = "the page does not answer any more since check " + x.Name
			}
		}
	}
	return found
}

func answers(p *browser.Page) bool {
	v, err := p.Evaluate("true", false, alive)
	return err == nil && string(v.Value) == "true"
}

// measureIn makes one check in the page. hung says that its code was given up.
func measureIn(p *browser.Page, c *check) (m measure, hung bool) {
	most := c.Timeout.D()
	code, err := wrap(p, c, most)
	if err != nil {
		return measure{Reason: reasonOf(err)}, false
	}
	v, err := p.Evaluate(code, c.World == ownWorld, most+alive) // the page itself keeps time; this is for loops that do not let it
	if err != nil {
		var e *nodes.Error
		if errors.As(err, &e) && e.Category == "page_hang" {
			return measure{Reason: fmt.Sprintf("gave nothing within %v: a loop that never ends", most)}, true
		}
		return measure{Reason: reasonOf(err)}, false
	}
	var got struct {
		Type  string
		Value json.RawMessage
		Notes []string
	}
	if err := json.Unmarshal(v.Value, &got); err != nil {
		return measure{Reason: "gave nothing that can be read"}, false
	}
	m.Notes = got.Notes
	switch got.Type {
	case "boolean", "number":
		if err := json.Unmarshal(got.Value, &m.Value); err != nil {
			return measure{Reason: "gave nothing that can be read", Notes: got.Notes}, false
		}
		m.Pass, m.Reason = c.judge(m.Value)
	case "timeout":
		m.Reason = fmt.Sprintf("gave nothing within %v: a promise that never settles", most)
	default:
		m.Reason = "gave " + got.Type + ", not a truth value or a number"
	}
	return m, false
}

// script makes code that runs a check. Its value is an object whose fields were made by the wrapper, so that
// NaN, null and objects cannot be mistaken for one another on the way.
const script = `(async () => {
	const args = %s, notes = [];
	const note = text => { if (notes.length < 5) notes.push(String(text).slice(0, 300)); };
	const late = new Promise(done => setTimeout(done, %d, {Type: 'timeout', Notes: notes}));
	const work = (async () => {
		let v = await (async () => { %s
		})();
		if (typeof v === 'function') v = await v(args, note);
		let type = typeof v;
		if (v === null) type = 'null';
		if (type === 'number' && !Number.isFinite(v)) type = String(v);
		if (type === 'object') type = 'an object';
		return {Type: type, Value: type === 'boolean' || type === 'number' ? v : 0, Notes: notes};
	})();
	return Promise.race([work, late]);
})()`

// wrap returns the code of a check as an expression if it is one, else as the body of a function.
func wrap(p *browser.Page, c *check, most time.Duration) (string, error) {
	args := string(c.Args)
	if args == "" {
		args = "{}"
	}
	source := strings.TrimRight(strings.TrimSpace(c.JS), ";")
	expression := fmt.Sprintf(script, args, most.Milliseconds(), "return (\n"+source+"\n);")
	if p.Compile(expression) == nil {
		return expression, nil
	}
	body := fmt.Sprintf(script, args, most.Milliseconds(), "\n"+c.JS+"\n")
	return body, p.Compile(body)
}

// reasonOf says what an exception says, in one line.
func reasonOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

package executor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// controls are the kinds of node that the host carries out itself, from the run's state, when
// their start is recorded. They run on the goroutine that has the turn and cost nothing. The kind approval
// is another: see question.
var controls = map[string]func(h *host, n *dag.Node, now time.Time) error{
	"checkpoint": (*host).checkpoint,
	"route":      (*host).route,
	"milestone":  (*host).milestone,
	"join":       (*host).join,
}

// done records that a control node has ended well, after further facts. The ends of joins, of which no other node that
// starts with them speaks, are recorded with one write.
func (h *host) done(
	n *dag.Node, now time.Time, v map[string]json.RawMessage, before ...machine.Body,
) (err error) {
	o := machine.Outcome{Status: dag.StatusCompleted}
	o.Body.Values = v
	if o.Body.Fingerprint, err = h.decided(n, v); err != nil {
		return h.undone(n, now, err)
	}
	end := h.state().Settle(n.ID, o, now).Body
	if n.Role().Joins {
		h.joined = append(h.joined, end)
		return nil
	}
	return h.record(now, append(before, end)...)
}

// joins records the ends of joins that are not recorded yet.
func (h *host) joins(now time.Time) error {
	ended := h.joined
	h.joined = nil
	return h.record(now, ended...)
}

// undone records that a control node could not be carried out as its settings say.
func (h *host) undone(n *dag.Node, now time.Time, err error) error {
	return h.record(now, h.refuse(n, err.Error(), now))
}

// settings reads the settings of a control node, with every ${...} resolved.
func (h *host) settings(n *dag.Node, into any) error {
	with := n.With
	if n.Dynamic {
		var err error
		if with, err = h.o.Eval.Resolve(with, h.state().ScopeOf(n.ID)); err != nil {
			return fmt.Errorf("with: %w", err)
		}
	}
	if len(with) == 0 {
		return nil
	}
	return json.Unmarshal(with, into)
}

func (h *host) join(n *dag.Node, now time.Time) error { return h.done(n, now, nil) }

func (h *host) checkpoint(n *dag.Node, now time.Time) error {
	if err := h.joins(now); err != nil { // it holds all that is done
		return err
	}
	var with struct {
		ID           string
		Artifacts    []string
		Accumulators []string
	}
	if err := h.settings(n, &with); err != nil {
		return h.undone(n, now, err)
	}
	if with.ID == "" {
		with.ID = "cp-" + strings.ReplaceAll(n.ID, "/", "-")
	}
	names := append(with.Artifacts, with.Accumulators...)
	info, err := h.run.Checkpoint(now, with.ID, n.ID, names)
	if err != nil {
		return err
	}
	v, err := recordable(n, map[string]any{"id": info.ID, "path": info.Path})
	if err != nil {
		return h.undone(n, now, err)
	}
	return h.done(n, now, v)
}

// recordable are the values that a node declares, as they are recorded; nil for none.
func recordable(n *dag.Node, v map[string]any) (out map[string]json.RawMessage, err error) {
	for name, value := range v {
		if _, declared := n.Outputs[name]; !declared {
			continue
		}
		raw, err := json.Marshal(value)
		if err == nil {
			raw, err = dag.KeptValue(raw)
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be kept: %w", name, err)
		}
		if out == nil {
			out = map[string]json.RawMessage{}
		}
		out[name] = raw
	}
	return out, nil
}

// route takes the first rule whose condition holds. The rules are CEL over recorded values, so
// they are evaluated one by one and not resolved with the settings.
func (h *host) route(n *dag.Node, now time.Time) error {
	v, err := h.decide(n)
	if err != nil {
		return h.undone(n, now, err)
	}
	return h.done(n, now, v)
}

func (h *host) decide(n *dag.Node) (map[string]json.RawMessage, error) {
	var with struct {
		Rules  []routeRule
		Else   string
		Reason string
		Values map[string]string
	}
	if err := json.Unmarshal(n.With, &with); err != nil {
		return nil, err
	}
	scope := h.state().ScopeOf(n.ID)
	taken, declined := routeRule{Name: "else", Then: with.Else, Reason: with.Reason}, []string{}
	for _, r := range with.Rules {
		ok, err := h.o.Eval.Condition(r.When, scope)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		if !ok {
			continue
		}
		lacking, err := h.lacking(r, scope)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		if len(lacking) == 0 {
			taken = r
			break
		}
		declined = append(declined, r.Name+": "+strings.Join(lacking, ", "))
	}
	reason, err := h.text(taken.Reason, scope)
	if err != nil {
		return nil, fmt.Errorf("reason of rule %s: %w", taken.Name, err)
	}
	if len(declined) > 0 {
		reason = strings.TrimPrefix(reason+"; not "+strings.Join(declined, "; not "), "; ")
	}
	v := map[string]any{"decision": taken.Then, "rule": taken.Name, "reason": reason, "declined": declined}
	for name, src := range with.Values {
		raw, err := h.o.Eval.Value(src, scope)
		if err != nil {
			return nil, fmt.Errorf("value %s: %w", name, err)
		}
		if raw != nil { // what was not read is absent
			v[name] = raw
		}
	}
	return recordable(n, v)
}

// A routeRule is #RouteRule.
type routeRule struct {
	Name, When, Then, Reason string
	Require                  []struct{ That, Else string }
}

// lacking says what a rule requires and is not so.
func (h *host) lacking(r routeRule, scope dag.Scope) (out []string, err error) {
	for _, x := range r.Require {
		ok, err := h.o.Eval.Condition(x.That, scope)
		if err != nil {
			return nil, err
		}
		if ok {
			continue
		}
		text, err := h.text(x.Else, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// text fills the ${...} of a text.
func (h *host) text(s string, scope dag.Scope) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	if raw, err = h.o.Eval.Resolve(raw, scope); err != nil {
		return "", err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	return string(raw), nil
}

// milestone records what a node says of where the run stands.
func (h *host) milestone(n *dag.Node, now time.Time) error {
	with := struct {
		State, Section string
		Stable         bool
		Issues         *issues
		PullRequest    *machine.PROpenedBody
	}{Stable: true}
	if err := h.settings(n, &with); err != nil {
		return h.undone(n, now, err)
	}
	var facts []machine.Body
	if with.Issues != nil {
		list, err := with.Issues.facts(n.ID, h.state().Issues(), h.worker.Line)
		if err != nil {
			return h.undone(n, now, err)
		}
		facts = list
	}
	if b := with.PullRequest; b != nil {
		b.Node, b.Title = n.ID, h.worker.Line(b.Title)
		if !slices.Contains(h.state().PullRequests(), *b) {
			facts = append(facts, b)
		}
	}
	if old := h.state().DeclaredState(with.Section); with.State != "" && with.State != old {
		facts = append(facts, &machine.RunStateChangedBody{
			Section: with.Section, Old: old, New: with.State, Stable: with.Stable,
		})
	}
	return h.done(n, now, nil, facts...)
}

// question is the fact that an approval node asks: it takes the place of a start. The machine
// holds the node until the answer is recorded, and completes it.
func (h *host) question(n *dag.Node, now time.Time) machine.Body {
	var with struct {
		Type        string
		Message     string
		Options     []dag.Option
		Refuses     *[]string
		Recommended string
		Default     string
		After       dag.Duration
	}
	if err := h.settings(n, &with); err != nil {
		return h.refuse(n, err.Error(), now)
	}
	q := machine.EscalationOpenedBody{Kind: machine.AskApproval, Type: with.Type, Node: n.ID,
		Message: h.worker.Line(with.Message), Recommended: with.Recommended, Default: with.Default,
		Does: map[string]string{}, Texts: map[string]string{}}
	for _, o := range with.Options {
		q.Options = append(q.Options, o.Name)
		q.Does[o.Name], q.Texts[o.Name] = h.worker.Line(o.Does), o.Text
	}
	q.Refuses = dag.Refusing(q.Options, with.Refuses)
	if with.After > 0 && with.Default != "" {
		q.Deadline = now.Add(with.After.D()).UTC().Truncate(time.Millisecond)
	}
	return h.state().Ask(q, now)
}

package executor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"dagrun.dev/dag/machine"
)

// issues says which issues of a scope are open. All others of that scope are not, or not any more.
type issues struct {
	Scope string
	Open  []json.RawMessage
}

// facts are what changes: issues that are open now and were not, then those that were and are not any more.
func (x *issues) facts(
	node string, known []machine.IssueView, line func(string) string,
) (facts []machine.Body, err error) {
	scope := cmp.Or(x.Scope, node) + "/"
	was, open := map[string]bool{}, map[string]bool{}
	for _, v := range known {
		was[v.IssueID] = v.Resolved.IsZero()
	}
	for _, raw := range x.Open {
		var v struct{ ID, Title, Severity string }
		if json.Unmarshal(raw, &v.ID) != nil {
			if err := json.Unmarshal(raw, &v); err != nil || v.ID == "" {
				return nil, fmt.Errorf("issues.open: want texts, or {id, title, severity}, got %s", raw)
			}
		}
		b := &machine.IssueBody{Node: node, IssueID: scope + line(v.ID), Title: line(v.Title), Severity: v.Severity}
		if !open[b.IssueID] && !was[b.IssueID] {
			facts = append(facts, b)
		}
		open[b.IssueID] = true
	}
	for _, v := range known {
		if was[v.IssueID] && !open[v.IssueID] && strings.HasPrefix(v.IssueID, scope) {
			b := &machine.IssueBody{Node: node, IssueID: v.IssueID, Title: v.Title, Severity: v.Severity, Resolved: true}
			facts = append(facts, b)
		}
	}
	return facts, nil
}

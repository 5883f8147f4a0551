package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag/machine"
)

// facts is the allow-list of Task.Emit: which facts a kind may record by itself. Everything
// else about an attempt is recorded by the host.
var facts = map[string][]machine.Type{
	"agent":      {machine.LLMCallStarted, machine.LLMCallFinished, machine.LLMCallFailed, machine.IssueOpened, machine.IssueResolved},
	"http":       {machine.LLMCallStarted, machine.LLMCallFinished, machine.LLMCallFailed},
	"gates":      {machine.GateRunStarted, machine.GateRunFinished},
	"screenshot": {machine.GateRunStarted, machine.GateRunFinished},
	"validate":   {machine.IssueOpened, machine.IssueResolved},
	"verdict":    {machine.IssueOpened, machine.IssueResolved},
	"exec":       {machine.PROpened, machine.IssueOpened, machine.IssueResolved},
}

// callID names an attempt's call of a model: one attempt is one call.
func (a *attempt) callID() string { return fmt.Sprintf("%s.%d.%d", a.node.ID, a.generation, a.number) }

// emit records a fact of a kind and returns when it is written.
func (h *host) emit(a *attempt, typ string, body any) error {
	t := machine.Type(typ)
	if !slices.Contains(facts[a.kind], t) {
		return fmt.Errorf("a node of kind %s records no %s", a.kind, typ)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(h.mask.JSON(raw), &fields); err != nil {
		return fmt.Errorf("%s: the payload is not an object: %w", typ, err)
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	fields["node"], _ = json.Marshal(a.node.ID) // a string cannot fail
	if strings.HasPrefix(typ, "LLM_CALL_") {
		fields["call_id"], _ = json.Marshal(a.callID())
	}
	if raw, err = json.Marshal(fields); err != nil {
		return err
	}
	payload, err := machine.DecodePayload(t, raw)
	if err != nil {
		return err
	}
	gone := h.onLoop(func() { err = h.record(h.clock.now(), payload) })
	return errors.Join(gone, err)
}

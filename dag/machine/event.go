package machine

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"dagrun.dev/dag"
)

// Schema is the version of the events and of the snapshot that this package writes.
const Schema = 1

// An Event is a fact: durable before anything acts on it. Exactly one payload is set, the
// one that belongs to Type. Seq counts from 1 and equals the line in the log.
type Event struct {
	Seq  int64
	Time time.Time // UTC, whole milliseconds
	Type Type
	Body Body

	// Plan is the plan that RUN_CREATED and PLAN_ADOPTED name by digest. Whoever reads the
	// log attaches it; it is not part of the event on disk.
	Plan *dag.Graph
}

// Body is a payload: a pointer to one of the structs in bodies.go. Its JSON form is canonical (RFC 8785) when encoded
// by AppendPayload.
type Body interface{ isFact() }

// fact makes a struct a payload.
type fact struct{}

func (fact) isFact() {}

// Type is the name of an event on disk. Types and fields are only ever added.
type Type string

// The event types on disk. Names that document 001 gives are used as they stand.
const (
	RunCreated       Type = "RUN_CREATED"
	InputsCloned     Type = "INPUTS_CLONED"
	PlanSubmitted    Type = "PLAN_SUBMITTED"
	PlanAdopted      Type = "PLAN_ADOPTED"
	PlanExtended     Type = "PLAN_EXTENDED"
	LimitsChanged    Type = "LIMITS_CHANGED"
	Queued           Type = "WORK_ITEM_QUEUED"
	Started          Type = "WORK_ITEM_STARTED"
	Finished         Type = "WORK_ITEM_FINISHED"
	LLMCallStarted   Type = "LLM_CALL_STARTED"
	LLMCallFinished  Type = "LLM_CALL_FINISHED"
	LLMCallFailed    Type = "LLM_CALL_FAILED"
	ArtifactWritten  Type = "ARTIFACT_WRITTEN"
	GateRunStarted   Type = "GATE_RUN_STARTED"
	GateRunFinished  Type = "GATE_RUN_FINISHED"
	IssueOpened      Type = "ISSUE_OPENED"
	IssueResolved    Type = "ISSUE_RESOLVED"
	RunStateChanged  Type = "RUN_STATE_CHANGED"
	PROpened         Type = "PR_OPENED"
	BreakerChanged   Type = "BREAKER_CHANGED"
	CompStarted      Type = "COMPENSATION_STARTED"
	CompFinished     Type = "COMPENSATION_FINISHED"
	Rewound          Type = "REWOUND"
	EscalationOpened Type = "ESCALATION_OPENED"
	EscalationAnswer Type = "ESCALATION_ANSWERED"
	Checkpointed     Type = "CHECKPOINT_CREATED"
	Reverted         Type = "REVERTED"
	BudgetWarned     Type = "BUDGET_WARNED"
	RunPaused        Type = "RUN_PAUSED"
	RunInterrupted   Type = "RUN_INTERRUPTED"
	RunResumed       Type = "RUN_RESUMED"
	RunCompleted     Type = "RUN_COMPLETED"
	RunFailed        Type = "RUN_FAILED"
)

// A declaration is all that there is to an event type: a new one is a constant, its payload and a row of events.
type declaration struct {
	typ  Type
	body reflect.Type // the payload
	// Of two types with one payload, a field of it that is not written says which: this one has the value set.
	flag int // -1 = none
	set  bool
	node int                       // the field that says which node the event is about, -1 = none
	fold func(*State, Event) error // makes it part of the state, or refuses what cannot have happened
}

// events are the event types, in the order in which they are printed. The codec, the published schemas, Apply and
// NodeOf read this table; nothing else lists them.
var events = []*declaration{
	event(RunCreated, (*State).onRunCreated),
	event(InputsCloned, (*State).onInputsCloned),
	event(PlanSubmitted, (*State).onPlanSubmitted),
	event(PlanAdopted, (*State).onPlanAdopted),
	event(PlanExtended, (*State).onPlanExtended),
	event(LimitsChanged, (*State).onLimits),
	event(Queued, (*State).onQueued),
	event(Started, (*State).onStarted),
	event(Finished, (*State).onFinished),
	event(LLMCallStarted, (*State).onCallStarted),
	event(LLMCallFinished, (*State).onCallFinished),
	event(LLMCallFailed, (*State).onCallFailed),
	event(ArtifactWritten, (*State).onArtifact),
	event(GateRunStarted, (*State).onGate).when("Start", true),
	event(GateRunFinished, (*State).onGate).when("Start", false),
	event(IssueOpened, (*State).onIssue).when("Resolved", false),
	event(IssueResolved, (*State).onIssue).when("Resolved", true),
	event(RunStateChanged, (*State).onDeclared),
	event(PROpened, (*State).onPullRequest),
	event(BreakerChanged, (*State).onBreaker),
	event(CompStarted, (*State).onCompensation).when("Done", false),
	event(CompFinished, (*State).onCompensation).when("Done", true),
	event(Rewound, (*State).onRewound).about("To"),
	event(EscalationOpened, (*State).onEscalation),
	event(EscalationAnswer, (*State).onAnswer),
	event(Checkpointed, (*State).onCheckpoint),
	event(Reverted, (*State).onReverted),
	event(BudgetWarned, (*State).onWarned),
	event(RunPaused, (*State).onPaused),
	event(RunInterrupted, (*State).onInterrupted),
	event(RunResumed, (*State).onResumed),
	event(RunCompleted, (*State).onEnded).when("Failed", false),
	event(RunFailed, (*State).onEnded).when("Failed", true),
}

// event declares a type of events with its payload.
func event[P interface {
	*B
	Body
}, B any](t Type, fold func(*State, Event, P) error) *declaration {
	d := &declaration{typ: t, body: reflect.TypeFor[B](), flag: -1, node: -1}
	d.fold = func(s *State, e Event) error {
		b, ok := e.Body.(P)
		if !ok {
			return fmt.Errorf("has the payload of another type, %T", e.Body)
		}
		return fold(s, e, b)
	}
	if f, ok := d.body.FieldByName("Node"); ok {
		d.node = f.Index[0]
	}
	return d
}

func (d *declaration) field(name string) int {
	f, ok := d.body.FieldByName(name)
	if !ok {
		panic("machine: the payload of " + string(d.typ) + " has no field " + name)
	}
	return f.Index[0]
}

func (d *declaration) about(node string) *declaration { d.node = d.field(node); return d }
func (d *declaration) when(flag string, set bool) *declaration {
	d.flag, d.set = d.field(flag), set
	return d
}

// empty returns a payload to decode into.
func (d *declaration) empty() Body {
	v := reflect.New(d.body)
	if d.flag >= 0 {
		v.Elem().Field(d.flag).SetBool(d.set)
	}
	return v.Interface().(Body)
}

var (
	byType = make(map[Type]*declaration, len(events))
	byBody = make(map[reflect.Type][]*declaration, len(events))
)

func init() {
	for _, d := range events {
		byType[d.typ] = d
		byBody[reflect.PointerTo(d.body)] = append(byBody[reflect.PointerTo(d.body)], d)
	}
}

// declared returns the declaration of a payload.
func declared(b Body) *declaration {
	for _, d := range byBody[reflect.TypeOf(b)] {
		if d.flag < 0 || reflect.ValueOf(b).Elem().Field(d.flag).Bool() == d.set {
			return d
		}
	}
	panic(fmt.Sprintf("machine: %T is not in the table of events", b))
}

// Types returns all event types, in the order of their declaration.
func Types() []Type {
	list := make([]Type, len(events))
	for k, d := range events {
		list[k] = d.typ
	}
	return list
}

// Shapes returns an empty value of what stands on disk, by name: the payload of every event type,
// and the snapshot under "snapshot". It is for publishing their JSON Schemas.
func Shapes() map[string]any {
	m := map[string]any{"snapshot": snapshot{}}
	for _, d := range events {
		m[string(d.typ)] = d.empty()
	}
	return m
}

// New returns an event of the body's type at an instant, cut to milliseconds. Seq is set when
// the event is appended to a log.
func New(at time.Time, b Body) Event {
	return Event{Time: at.UTC().Truncate(time.Millisecond), Type: declared(b).typ, Body: b}
}

// NodeOf returns the node that an event is about, empty if there is none or more than one.
func NodeOf(b Body) string {
	d := declared(b)
	if d.node < 0 {
		return ""
	}
	return reflect.ValueOf(b).Elem().Field(d.node).String()
}

// AppendPayload appends the canonical JSON (RFC 8785) of a payload to dst. It fails only when
// the payload holds what JSON cannot say exactly: malformed raw values, integers beyond 2^53.
func AppendPayload(dst []byte, b Body) ([]byte, error) {
	dst, err := dag.AppendJSON(dst, b)
	if err != nil {
		err = fmt.Errorf("payload of %s: %w", declared(b).typ, err)
	}
	return dst, err
}

// DecodePayload reads the payload of an event of a type. Names are exact; an unknown type or
// field means that a newer version wrote the event, and is refused.
func DecodePayload(t Type, raw []byte) (Body, error) {
	d, ok := byType[t]
	if !ok {
		return nil, fmt.Errorf("unknown event type %q: a newer version wrote it", t)
	}
	b := d.empty()
	if err := decode(raw, b); err != nil {
		return nil, fmt.Errorf("payload of %s: %w", t, err)
	}
	return b, nil
}

// decode reads what this package writes.
func decode(raw []byte, v any) error {
	err := dag.DecodeJSON(raw, v)
	if errors.Is(err, dag.ErrUnknownField) {
		err = fmt.Errorf("%w: a newer version wrote it", err)
	}
	return err
}

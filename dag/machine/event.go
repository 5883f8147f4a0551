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

// An Event is a fact: written before anything acts on it, and synced first where losing it could repeat
// cost or an effect (see urgency). Exactly one payload is set, the one that belongs to Type. Seq counts
// from 1 and equals the line in the log.
type Event struct {
	Seq  int64
	Time time.Time // UTC, whole milliseconds
	Type Type
	Body Body

	// Plan is the plan that RUN_CREATED and PLAN_ADOPTED name by digest. Whoever reads the
	// log attaches it; it is not part of the event on disk.
	Plan *dag.Graph
}

// Body is a payload: a pointer to one of the structs in bodies.go. Its JSON form is canonical (RFC 8785)
// when encoded by AppendPayload.
type Body interface{ isFact() }

// fact makes a struct a payload.
type fact struct{}

func (fact) isFact() {}

// Type is the name of an event on disk. Types and fields are only ever added.
type Type string

// The event types on disk.
const (
	RunCreated       Type = "RUN_CREATED"
	InputsCloned     Type = "INPUTS_CLONED"
	PlanSubmitted    Type = "PLAN_SUBMITTED"
	PlanAdopted      Type = "PLAN_ADOPTED"
	PlanExtended     Type = "PLAN_EXTENDED"
	LimitsChanged    Type = "LIMITS_CHANGED"
	PartSelected     Type = "PART_SELECTED"
	Queued           Type = "WORK_ITEM_QUEUED"
	Started          Type = "WORK_ITEM_STARTED"
	TookEffect       Type = "WORK_ITEM_TOOK_EFFECT"
	Finished         Type = "WORK_ITEM_FINISHED"
	LLMCallStarted   Type = "LLM_CALL_STARTED"
	LLMCallFinished  Type = "LLM_CALL_FINISHED"
	LLMCallFailed    Type = "LLM_CALL_FAILED"
	ArtifactWritten  Type = "ARTIFACT_WRITTEN"
	Published        Type = "PUBLISHED"
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
	Notified         Type = "NOTIFIED"
	Checkpointed     Type = "CHECKPOINT_CREATED"
	Reverted         Type = "REVERTED"
	BudgetWarned     Type = "BUDGET_WARNED"
	RunPaused        Type = "RUN_PAUSED"
	RunInterrupted   Type = "RUN_INTERRUPTED"
	RunSuspended     Type = "RUN_SUSPENDED"
	RunResumed       Type = "RUN_RESUMED"
	RunCompleted     Type = "RUN_COMPLETED"
	RunFailed        Type = "RUN_FAILED"
)

// A declaration is what the machine knows of an event type: a new one is a constant, its payload and a row of events.
type declaration struct {
	typ    Type
	body   reflect.Type // the payload
	urgent urgency
	save   bool
	// Of two types with one payload, a field of it that is not written says which: this one has the value set.
	flag int // 0 = none: the first field of a payload makes it one
	set  bool
	node int                       // the field that says which node the event is about, 0 = none
	fold func(*State, Event) error // makes it part of the state, or refuses what cannot have happened
}

// urgency reports whether an event has to be durable before anything acts on it: losing it could repeat cost or
// an effect, or take back what a user has been told. All others are durable within 50 ms.
type urgency func(s *State, b Body) bool

func soon(*State, Body) bool   { return false }
func atOnce(*State, Body) bool { return true }

// paidStart is atOnce for a start that may cost something, or must not be repeated unasked.
func paidStart(s *State, b Body) bool {
	started := b.(*StartedBody)
	return s.costly(started.Node) || started.Reserve != dag.Amount{}
}

// paidEnd is atOnce for the end of such an attempt, and for one that has cost something all the same.
func paidEnd(s *State, b Body) bool {
	finished := b.(*FinishedBody)
	return s.costly(finished.Node) || finished.CostUSD != 0 || finished.Usage != Usage{}
}

func (s *State) costly(node string) bool {
	i, ok := s.graph.Index(node)
	return ok && s.graph.Node(i).Costly()
}

// soonSaved is what the snapshot and the document for people hold when it is time to write them, savedNow has them
// written at once. Both can be made again: this is about the time that the next process needs, and about what people
// find in the document.
const (
	soonSaved = false
	savedNow  = true
)

// events are the event types, in the order in which they are printed. The codec, the published schemas, Apply,
// NodeOf, and the host that syncs and saves read this table. What the logs of a run say of each stands in
// dag/runlog/table.go.
var events = []*declaration{
	event(RunCreated, atOnce, soonSaved, (*State).onRunCreated),
	event(InputsCloned, soon, soonSaved, (*State).onInputsCloned),
	event(PlanSubmitted, atOnce, soonSaved, (*State).onPlanSubmitted),
	event(PlanAdopted, atOnce, savedNow, (*State).onPlanAdopted),
	event(PlanExtended, soon, soonSaved, (*State).onPlanExtended),
	event(LimitsChanged, atOnce, soonSaved, (*State).onLimits),
	event(PartSelected, atOnce, soonSaved, (*State).onSelected),
	event(Queued, soon, soonSaved, (*State).onQueued),
	event(Started, paidStart, soonSaved, (*State).onStarted),
	event(TookEffect, atOnce, soonSaved, (*State).onTookEffect),
	event(Finished, paidEnd, soonSaved, (*State).onFinished),
	event(LLMCallStarted, atOnce, soonSaved, (*State).onCallStarted),
	event(LLMCallFinished, soon, soonSaved, (*State).onCallFinished),
	event(LLMCallFailed, soon, soonSaved, (*State).onCallFailed),
	event(ArtifactWritten, soon, soonSaved, (*State).onArtifact),
	event(Published, atOnce, soonSaved, (*State).onPublished),
	event(GateRunStarted, soon, soonSaved, (*State).onGate).when("Start", true),
	event(GateRunFinished, soon, soonSaved, (*State).onGate).when("Start", false),
	event(IssueOpened, soon, soonSaved, (*State).onIssue).when("Resolved", false),
	event(IssueResolved, soon, soonSaved, (*State).onIssue).when("Resolved", true),
	event(RunStateChanged, soon, savedNow, (*State).onDeclared),
	event(PROpened, soon, soonSaved, (*State).onPullRequest),
	event(BreakerChanged, soon, soonSaved, (*State).onBreaker),
	event(CompStarted, atOnce, soonSaved, (*State).onCompensation).when("Done", false),
	event(CompFinished, atOnce, soonSaved, (*State).onCompensation).when("Done", true),
	event(Rewound, atOnce, soonSaved, (*State).onRewound).about("To"),
	event(EscalationOpened, atOnce, savedNow, (*State).onEscalation),
	event(EscalationAnswer, atOnce, savedNow, (*State).onAnswer),
	event(Notified, soon, soonSaved, (*State).onNotified),
	event(Checkpointed, atOnce, savedNow, (*State).onCheckpoint),
	event(Reverted, atOnce, savedNow, (*State).onReverted),
	event(BudgetWarned, soon, savedNow, (*State).onWarned),
	event(RunPaused, atOnce, savedNow, (*State).onPaused),
	event(RunInterrupted, soon, soonSaved, (*State).onInterrupted),
	event(RunSuspended, soon, soonSaved, (*State).onSuspended),
	event(RunResumed, atOnce, savedNow, (*State).onResumed),
	event(RunCompleted, atOnce, savedNow, (*State).onEnded).when("Failed", false),
	event(RunFailed, atOnce, savedNow, (*State).onEnded).when("Failed", true),
}

// event declares a type of events with its payload.
func event[P interface {
	*B
	Body
}, B any](t Type, urgent urgency, save bool, fold func(*State, Event, P) error) *declaration {
	d := &declaration{typ: t, body: reflect.TypeFor[B](), urgent: urgent, save: save}
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
	f, _ := d.body.FieldByName(name)
	return f.Index[0] // whoever names a field that is not there finds out at once
}

func (d *declaration) about(node string) *declaration { d.node = d.field(node); return d }
func (d *declaration) when(flag string, set bool) *declaration {
	d.flag, d.set = d.field(flag), set
	return d
}

// empty returns a payload to decode into.
func (d *declaration) empty() Body {
	v := reflect.New(d.body)
	if d.flag != 0 {
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
		if d.flag == 0 || reflect.ValueOf(b).Elem().Field(d.flag).Bool() == d.set {
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
	if d.node == 0 {
		return ""
	}
	return reflect.ValueOf(b).Elem().Field(d.node).String()
}

// Urgent reports whether an event that has been applied has to be durable before anything acts on it.
func (s *State) Urgent(e *Event) bool { return byType[e.Type].urgent(s, e.Body) }

// SaveNow reports whether snapshot and document are written after an event of the type whatever that costs.
func (t Type) SaveNow() bool { return byType[t].save }

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

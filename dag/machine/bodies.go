package machine

import (
	"encoding/json"
	"time"

	"dagrun.dev/dag"
)

// The payloads of events. Their fields are only added to: a log is read for ever.

// RunCreatedBody begins a run.
type RunCreatedBody struct {
	fact
	RunID      string `json:"run_id"`
	Name       string `json:"name"`
	PlanDigest string `json:"plan_digest"`
	Schema     int    `json:"schema_version"` // of events and snapshot
	Seed       int64  `json:"seed"`
	// Previous is the last tick that was put away in the run's folder, where work never ends or did not; nil = none.
	Previous *Ended `json:"previous,omitempty"`
}

// Ended names a run that has ended by the end of its log.
type Ended struct {
	RunID  string `json:"run_id"`
	Events int64  `json:"events"` // how many
	Head   string `json:"head"`   // hash of the last one
	Ticks  int64  `json:"ticks"`  // how many ticks there were with it, idle ones aside
}

// InputsClonedBody says that the declared input files were copied into the object store.
type InputsClonedBody struct {
	fact
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// PlanAdoptedBody changes the plan within a run. Nodes of both plans that are not listed
// keep their records. Those of Recheck have ended and are not changed themselves, but something above
// them is: when their needs have ended again, either their results are proved to hold
// (WORK_ITEM_FINISHED with reused), or they run again (REWOUND). Items of an expansion that is
// made anew are among them; those that it does not bring back are dropped.
type PlanAdoptedBody struct {
	fact
	PlanDigest  string   `json:"plan_digest"`
	Previous    string   `json:"previous_digest"`
	Reused      int      `json:"reused"`
	Invalidated []string `json:"invalidated,omitempty"` // run again, generation + 1; plan order
	Recheck     []string `json:"recheck,omitempty"`     // run again only if what they read has changed; plan order
	Removed     []string `json:"removed,omitempty"`
	Added       []string `json:"added,omitempty"`
}

// PlanExtendedBody adds the nodes of a run-time foreach to the plan. Dependents of Node then
// also need Nodes.
type PlanExtendedBody struct {
	fact
	Node       string     `json:"node"`
	Generation int        `json:"generation"`
	Nodes      []dag.Node `json:"nodes"`
}

// LimitsChangedBody replaces the budget.
type LimitsChangedBody struct {
	fact
	Budget dag.Budget `json:"budget"`
	By     string     `json:"by"`
}

// PartSelectedBody says which part of the plan is to run from now on, until the next one says otherwise. It is recorded
// before the plan that it is meant for is adopted.
type PartSelectedBody struct {
	fact
	Part dag.Selection `json:"part,omitzero"` // empty: all of it
	// Rerun are names as in a selection: these nodes and what depends on them run again, once. REWOUND says when.
	Rerun []string `json:"rerun,omitempty"`
	By    string   `json:"by"` // command
	// SavedPlan is the id of the saved plan that is applied, if one is. A run takes each once.
	SavedPlan string `json:"saved_plan,omitempty"`
}

// QueuedBody says that nodes may start and wait: their condition was true, or they wait for their place in a pool.
type QueuedBody struct {
	fact
	Nodes  []string `json:"nodes"`
	Reason string   `json:"reason"` // condition | pool
}

// StartedBody begins an attempt. A host that hands attempts over to a queue records it twice: when the
// attempt was handed over (queued), and when a worker began. One that has workers of its own records it
// once, because both are one instant. Time limits and durations count from when the work began.
type StartedBody struct {
	fact
	Node       string     `json:"node"`
	Generation int        `json:"generation"` // from 1
	Attempt    int        `json:"attempt"`    // from 1, counts starts within the generation
	Reserve    dag.Amount `json:"reserve,omitzero"`
	Queued     bool       `json:"queued,omitempty"` // handed over; the work has not begun
}

// TookEffectBody says that the work of an attempt that must not be repeated unasked has ended well. It is recorded
// before what that left is kept and published: whatever fails afterwards is no failure of the work.
type TookEffectBody struct {
	fact
	Node       string `json:"node"`
	Generation int    `json:"generation"`
	Attempt    int    `json:"attempt"`
	How        string `json:"how"` // e.g. exit status 0
}

// FinishedBody ends an attempt, or settles a node that never started: one that is skipped, an approval that was
// answered, or one that failed without an attempt.
type FinishedBody struct {
	fact
	Node        string                     `json:"node"`
	Generation  int                        `json:"generation"`
	Attempt     int                        `json:"attempt,omitempty"` // 0 = the node never started
	Status      dag.Status                 `json:"status"`
	Final       bool                       `json:"final,omitempty"`    // no further attempt follows
	Category    string                     `json:"category,omitempty"` // of a failure
	Class       dag.Class                  `json:"class,omitempty"`
	Message     string                     `json:"message,omitempty"`     // one line
	Diagnostics string                     `json:"diagnostics,omitempty"` // at most 2,000 characters
	Values      map[string]json.RawMessage `json:"values,omitempty"`
	Usage       Usage                      `json:"usage,omitzero"`
	CostUSD     dag.USD                    `json:"cost_usd,omitzero"`
	CostKind    dag.CostKind               `json:"cost_kind,omitempty"` // reported | priced | free | assumed (its reserve)
	RetryAt     time.Time                  `json:"retry_at,omitzero"`
	WaitUntil   time.Time                  `json:"wait_until,omitzero"`
	Stop        bool                       `json:"stop,omitempty"`        // only a user can help; the run pauses
	Fingerprint string                     `json:"fingerprint,omitempty"` // of what it read: reuse.AttemptFingerprint
	Warnings    []string                   `json:"warnings,omitempty"`
	Notes       []LogLine                  `json:"notes,omitempty"`
	Reused      bool                       `json:"reused,omitempty"` // an earlier end: what it reads did not change
	Kept        []KeptFile                 `json:"kept,omitempty"`   // what it left in its node's folder, oldest first
	// Salvaged are the artifacts and values that count although the node has failed for good. No other failure of an
	// attempt has any.
	Salvaged []string `json:"salvaged,omitempty"`
}

// A KeptFile is a file that an attempt left in its node's folder. A later attempt that keeps one of the same
// name has the earlier one renamed; its content stays what it was.
type KeptFile struct {
	Name   string `json:"name"` // within the folder
	Digest string `json:"sha256"`
	Size   int64  `json:"size"`
}

// NoteValidation is the type of the note that tells how the checks of an answer went: its field result is pass or fail.
const NoteValidation = "validation"

// A LogLine is a small record for the run's logs: why something was decided, how good it was.
type LogLine struct {
	Log    string          `json:"log"`  // decision | quality | node (fields of its line in passes.jsonl)
	Type   string          `json:"type"` // e.g. validation, no-modification
	Fields json.RawMessage `json:"fields,omitempty"`
}

// Usage counts tokens in four disjoint classes.
type Usage = dag.Usage

// LLMCallStartedBody says what is sent to a model, before it is sent. Consumers of the log rely on the names of this
// payload and of the two that end a call.
type LLMCallStartedBody struct {
	fact
	CallID          string   `json:"call_id"` // node.generation.attempt
	Node            string   `json:"node"`
	Model           string   `json:"model"`
	ProviderBaseURL string   `json:"provider_base_url"` // cli:<name> where a CLI does not say
	PromptHash      string   `json:"prompt_hash"`
	Temperature     *float64 `json:"temperature,omitempty"` // absent where none was sent
	MaxTokens       int64    `json:"max_tokens"`
	ToolSchemaHash  string   `json:"tool_schema_hash,omitempty"`
	ResponseFormat  string   `json:"response_format,omitempty"`
	PromptTokens    int64    `json:"prompt_tokens_estimate,omitempty"` // characters / 4, rounded up; known before the call
}

// TokenUsage counts the tokens of one call. Input includes what a cache held.
type TokenUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Total  int64 `json:"total_tokens"`
}

// LLMCallFinishedBody says that a model has answered.
type LLMCallFinishedBody struct {
	fact
	CallID         string     `json:"call_id"`
	Node           string     `json:"node"`
	LatencyMS      int64      `json:"latency_ms"`
	TokenUsage     TokenUsage `json:"token_usage"`
	FinishReason   string     `json:"finish_reason"` // stop | length | tool_calls | error
	OutputHash     string     `json:"output_hash"`
	APICostUSD     dag.USD    `json:"api_cost_usd,omitzero"`
	ToolCallsCount int        `json:"tool_calls_count,omitempty"`
}

// LLMCallFailedBody says that a call gave no answer.
type LLMCallFailedBody struct {
	fact
	CallID       string `json:"call_id"`
	Node         string `json:"node"`
	LatencyMS    int64  `json:"latency_ms"`
	ErrorClass   string `json:"error_class"`
	ErrorSummary string `json:"error_summary"`
	Retryable    bool   `json:"retryable"`
	ErrorDetails string `json:"error_details,omitempty"`
	HTTPStatus   int    `json:"http_status,omitempty"`
}

// ArtifactWrittenBody records a version of an artifact or an entry of an accumulator.
type ArtifactWrittenBody struct {
	fact
	Node       string `json:"node,omitempty"` // empty: adopted from a user's edit, or restored
	Generation int    `json:"generation,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	Name       string `json:"name"`
	Path       string `json:"path"`   // relative to the output directory
	Digest     string `json:"sha256"` // of the content (of the entry, for an accumulator)
	Size       int64  `json:"size"`
	Schema     string `json:"schema_id,omitempty"` // name of the declared schema that the content was held to
	Previous   string `json:"previous_sha256,omitempty"`
	Backup     string `json:"backup,omitempty"` // path of the copy made before the write
	Entry      bool   `json:"entry,omitempty"`  // an accumulator's entry
	// Why, of a version that no node wrote: user-edit | found (it stood there before the run wrote the file) | revert |
	// restored (what replaced it left the plan).
	Why string `json:"why,omitempty"`
}

// PublishedBody says that an attempt puts files beside the specification. It is durable before the first of them is
// there; that they stay follows from the end of the attempt.
type PublishedBody struct {
	fact
	Node       string          `json:"node"`
	Generation int             `json:"generation"`
	Attempt    int             `json:"attempt"`
	Files      []PublishedFile `json:"files"`
	// Settled says what was done about files of an attempt that has ended already: back (it does not count, and they are
	// as they were before) | put (it counts after all, and they are there).
	Settled string `json:"settled,omitempty"`
}

// A PublishedFile is a file beside the specification.
type PublishedFile struct {
	Path     string `json:"path"` // relative to the specification's folder
	Digest   string `json:"sha256"`
	Size     int64  `json:"size"`
	Previous string `json:"previous_sha256,omitempty"` // what it replaces, which is in the store; empty = nothing
	Left     bool   `json:"left,omitempty"`            // Previous is not the expected file: it stays
}

// What is done about files of an attempt that has ended.
const (
	SettledBack = "back"
	SettledPut  = "put"
)

// GateRunBody is the payload of GATE_RUN_STARTED and GATE_RUN_FINISHED.
type GateRunBody struct {
	fact
	Node    string          `json:"node"`
	Gate    string          `json:"gate"`
	Status  string          `json:"status,omitempty"` // pass | fail | error; empty when started
	Details json.RawMessage `json:"details,omitempty"`
	Start   bool            `json:"-"`
}

// IssueBody is the payload of ISSUE_OPENED and ISSUE_RESOLVED.
type IssueBody struct {
	fact
	Node     string `json:"node"`
	IssueID  string `json:"issue_id"`
	Title    string `json:"title,omitempty"`
	Severity string `json:"severity,omitempty"`
	Resolved bool   `json:"-"`
}

// RunStateChangedBody moves the declared state of the run or of a section.
type RunStateChangedBody struct {
	fact
	Section string `json:"section,omitempty"` // empty = the run
	Old     string `json:"old_state"`
	New     string `json:"new_state"`
	Stable  bool   `json:"stable"`
}

// PROpenedBody records a pull request.
type PROpenedBody struct {
	fact
	Node   string `json:"node"`
	URL    string `json:"url"`
	Title  string `json:"title,omitempty"`
	Base   string `json:"base,omitempty"`   // branch that it is to change
	Branch string `json:"branch,omitempty"` // that it asks to take over
	Commit string `json:"commit,omitempty"` // head of that branch
}

// BreakerChangedBody is a transition of a named breaker, probes included.
type BreakerChangedBody struct {
	fact
	Breaker string    `json:"breaker"`
	State   string    `json:"state"` // closed | open | half-open
	Until   time.Time `json:"until,omitzero"`
	Counts  Counts    `json:"counts,omitzero"`
	// Recent are the failures in each tenth of the breaker's window, the newest first, as of the event. Tenths begin
	// at whole multiples of their length since 1970.
	Recent []uint32 `json:"recent_failures,omitempty"`
	Cause  string   `json:"cause,omitempty"`
}

// Counts are a breaker's counters within its present generation.
type Counts struct {
	Requests  uint32 `json:"requests,omitempty"`
	Successes uint32 `json:"successes,omitempty"`
	Failures  uint32 `json:"failures,omitempty"`
	ConsecOK  uint32 `json:"consecutive_successes,omitempty"`
	ConsecBad uint32 `json:"consecutive_failures,omitempty"`
}

// CompensationBody is the payload of COMPENSATION_STARTED and COMPENSATION_FINISHED.
type CompensationBody struct {
	fact
	Node   string     `json:"node"`
	Reason string     `json:"reason,omitempty"` // when started: why it is undone; else why the action failed
	Action string     `json:"action,omitempty"` // when started: what is done, in short
	Status dag.Status `json:"status,omitempty"` // empty when started
	Own    bool       `json:"own,omitempty"`    // what is done about the failed node itself
	Done   bool       `json:"-"`
	// Then says that the failure of Node has been undone, and what follows: stop | continue. (Where it is to go again,
	// REWOUND follows.) It ends no action. Undone are the nodes whose actions have run, the first to run first; Left
	// those whose actions have not, because a user said so.
	Then   dag.Then `json:"then,omitempty"`
	Undone []string `json:"undone,omitempty"`
	Left   []string `json:"left,omitempty"`
}

// RewoundBody sends nodes back: generation + 1, to run again. Old records stay in the log.
type RewoundBody struct {
	fact
	To    string   `json:"to"`
	Nodes []string `json:"nodes"`
	// Recheck are nodes that stay ended, their results stale until what they need has ended again; see PLAN_ADOPTED.
	Recheck []string `json:"recheck,omitempty"`
	Reason  string   `json:"reason"`
	For     string   `json:"for,omitempty"`   // node whose failure asked for it; counts against its bound
	Asked   bool     `json:"asked,omitempty"` // PART_SELECTED asked for it
}

// EscalationOpenedBody is a durable question to a user.
type EscalationOpenedBody struct {
	fact
	ID      string   `json:"id"`
	Kind    Ask      `json:"kind"`            // approval | failed | lost | compensation | breaker
	Type    string   `json:"type,omitempty"`  // by which the plan says what is done about it; see dag.Escalation
	Stage   string   `json:"stage,omitempty"` // where in the pipeline, for people
	Node    string   `json:"node,omitempty"`
	Breaker string   `json:"breaker,omitempty"`
	Message string   `json:"message"`
	Options []string `json:"options"`
	// Does says what options lead to, Texts which of them ask for a text (required | optional).
	Does        map[string]string `json:"does,omitempty"`
	Texts       map[string]string `json:"texts,omitempty"`
	Refuses     []string          `json:"refuses,omitempty"` // those of them after which the node has failed
	Recommended string            `json:"recommended,omitempty"`
	Default     string            `json:"default,omitempty"`
	Deadline    time.Time         `json:"deadline,omitzero"` // zero = waits for ever
}

// EscalationAnsweredBody answers it.
type EscalationAnsweredBody struct {
	fact
	ID     string `json:"id"`
	Answer string `json:"answer"`
	By     string `json:"by"`             // user, or the name that one gave; deadline
	Text   string `json:"text,omitempty"` // why, or what the option asks for
}

// NotifiedBody says that somebody was told of an event, or could not be and is not told any more.
type NotifiedBody struct {
	fact
	Of    int64  `json:"of"` // seq of the event
	To    int    `json:"to"` // index in the plan's list
	Tries int    `json:"tries"`
	Error string `json:"error,omitempty"` // why nobody was told; empty = they were
	// Missed is how many events right before it nobody is told of, because too many were waiting.
	Missed int `json:"missed,omitempty"`
}

// CheckpointBody records a checkpoint.
type CheckpointBody struct {
	fact
	ID       string `json:"id"`
	Node     string `json:"node,omitempty"`
	Path     string `json:"path"`
	Manifest string `json:"manifest_sha256"`
	Head     int64  `json:"head"` // last event it includes
	// State is the digest of the snapshot in it, Artifact that of the artifact that the run is about. CostUSD was spent
	// until then, Invalid nodes had results that failed their checks, and Facts are those that the pipeline declares.
	State    string                     `json:"state_sha256,omitempty"`
	Artifact string                     `json:"artifact_sha256,omitempty"`
	CostUSD  dag.USD                    `json:"cost_usd,omitzero"`
	Invalid  int                        `json:"validation_failures,omitempty"`
	Facts    map[string]json.RawMessage `json:"facts,omitempty"`
}

// RevertedBody goes back to a checkpoint: the listed nodes run again.
type RevertedBody struct {
	fact
	Checkpoint string   `json:"checkpoint"`
	Nodes      []string `json:"nodes,omitempty"`
	// Published are files beside the specification that go back: what the run has put there and what is to stand there.
	// Of those that are left somebody has changed the first, or the second is lost.
	Published []PublishedFile `json:"published,omitempty"`
}

// BudgetWarnedBody is sent once per limit.
type BudgetWarnedBody struct {
	fact
	Limit    string  `json:"limit"` // usd | tokens
	SpentUSD dag.USD `json:"spent_usd"`
	Tokens   int64   `json:"tokens,omitempty"`
}

// RunPausedBody pauses the run.
type RunPausedBody struct {
	fact
	// node-failed | repeated-failure | budget | user | person | escalation | breaker | quota | disk | stuck |
	// cancel, failure (the run ends: clean-up, then RUN_FAILED)
	Reason  Pause  `json:"reason"`
	Node    string `json:"node,omitempty"`
	Message string `json:"message"`
	Undo    bool   `json:"undo,omitempty"` // of cancel: what was done is undone
	// Fault says what is wrong with a disk: full | quota | read-only | permission | large | broken.
	Fault string `json:"fault,omitempty"`
}

// RunInterruptedBody says that the process which carried the run on is gone: it died, or was made to
// exit at once. It is the first thing that the next one records. The run was active until the event before.
type RunInterruptedBody struct {
	fact
	Running int `json:"running,omitempty"` // attempts found in flight; their ends follow
}

// RunSuspendedBody says that the run stood still, just before: its machine slept, its process was stopped, or the clock
// was put ahead. That time is no activity, for the limits of the run and of nodes.
type RunSuspendedBody struct {
	fact
	IdleMS int64 `json:"idle_ms"`
}

// RunResumedBody ends a pause, or marks that a new process took the run over.
type RunResumedBody struct {
	fact
	By   string `json:"by"`             // apply | resume | cancel
	Lost int    `json:"lost,omitempty"` // attempts found in flight
}

// RunEndedBody is the payload of RUN_COMPLETED and RUN_FAILED.
type RunEndedBody struct {
	fact
	Failed    bool    `json:"-"`
	Reason    string  `json:"reason,omitempty"`
	Completed int     `json:"completed"`
	Soft      int     `json:"failed"` // failures that the spec allowed
	Skipped   int     `json:"skipped"`
	Undone    int     `json:"undone,omitempty"`
	CostUSD   dag.USD `json:"cost_usd"`
}

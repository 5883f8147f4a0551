// Package nodes says what a kind of work is: one attempt's Task goes in, a Result comes out.
//
// Kinds know nothing of graph, log or state: they are given everything an attempt may see and
// hand back values, files and usage. What they return is published by the host, or not at all.
package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Kind is one kind of work. Its functions may be called from any goroutine.
type Kind struct {
	// Name is the kind's name in specs.
	Name string
	// Schema is the CUE source of the kind's settings: package spec, one definition
	// #<Name> (#Exec, #Agent) with doc comments, plus helper definitions prefixed with it.
	Schema string
	// Parse reads the settings of one node. It is called at plan time too and must not touch the world. Beside an error
	// it returns what it could read, or nil.
	Parse func(with json.RawMessage) (Settings, error)
}

// Settings are those of one node, read. They are what an attempt at it can do: the abilities that only some have are
// further interfaces, see Able. Methods may be called from any goroutine, but for one attempt at a time.
type Settings interface {
	// Traits are what the compiler must know. It is called at plan time and must not touch the world.
	Traits() Traits
	// Run carries out one attempt. It returns when every process, tab and connection it opened
	// is gone. A cancelled ctx asks it to stop politely within Task.Grace. Errors are *Error
	// (see Fail); any other error is category "unknown". A Result may come with an error: its
	// usage, cost and entries count, its artifacts do not.
	Run(ctx context.Context, t *Task) (*Result, error)
}

// Describe reads settings and says what the compiler must know of them.
func (k Kind) Describe(with json.RawMessage) (Traits, error) {
	s, err := k.Parse(with)
	if err != nil {
		return Traits{}, err
	}
	return s.Traits(), nil
}

// Run reads the settings of a task and carries out one attempt.
func (k Kind) Run(ctx context.Context, t *Task) (*Result, error) {
	s, err := k.Parse(t.With)
	if err != nil {
		return nil, err
	}
	return s.Run(ctx, t)
}

// Able reads settings that have an ability, such as Prober. ok is false where they have not, or cannot be read, and for
// a kind that is none.
func Able[Ability any](k Kind, with json.RawMessage) (able Ability, ok bool) {
	if k.Parse == nil {
		return able, false
	}
	s, err := k.Parse(with)
	if err != nil {
		return able, false
	}
	able, ok = s.(Ability)
	return able, ok
}

// A FileChecker can hold its settings against the content of input files at plan time: a template's placeholders
// against the declared variables.
type FileChecker interface {
	// CheckFiles reads input files through open, by paths relative to the spec's folder. The
	// texts of problems name file, line and column; warnings are shown by plan.
	CheckFiles(open func(path string) (io.ReadCloser, error)) (problems []Problem, warnings []string)
}

// A Previewer has attempts that only look, so that a plan can show what one would find now.
type Previewer interface {
	// Preview looks as Run does and keeps nothing. Of t only Kind, With, SpecDir, Cache, Now and Formulas are given.
	Preview(ctx context.Context, t *Task) (lines []string, err error)
}

// A Prober can find out whether an attempt took effect whose process died before its end was recorded. The host asks
// it for nodes with effect probe.
type Prober interface {
	// Probe reports whether the attempt that t describes took effect. It must have no effect itself.
	Probe(ctx context.Context, t *Task) (took bool, err error)
}

// A Messenger does work that can take a message along.
type Messenger interface {
	// Message returns the settings, which are with, with a message in JSON in the place of what they read or send.
	Message(with json.RawMessage, message []byte) (json.RawMessage, error)
}

// WithField returns settings with a field set.
func WithField(with json.RawMessage, name string, v any) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	raw, err := json.Marshal(v)
	if err == nil && len(with) > 0 {
		err = json.Unmarshal(with, &fields)
	}
	if err != nil {
		return nil, err
	}
	fields[name] = raw
	return json.Marshal(fields)
}

// A Rescuer has attempts that receive what cannot be had again for nothing, and keep it in Task.Spool as it comes. When
// the host has died, the next one asks it for the end of the attempt, before that is called lost.
type Rescuer interface {
	// Rescue ends an attempt by what the dead host left in Task.Spool, and asks no service.
	// Task.Scratch is what the attempt had, or what is left of it. Result and error are those of
	// Run; both nil say that nothing there proves how the attempt ended.
	Rescue(ctx context.Context, t *Task) (*Result, error)
}

// A Salvager has attempts that may leave something that is whole although they fail.
type Salvager interface {
	// Salvage looks through what a failed attempt of t has left, when all that it started is gone. It stages the named
	// files and returns them and the named outputs, held to what a success would have to be; what is missing or does not
	// pass is left out, with a warning that begins with its name and says why. The rest of the result counts for nothing.
	Salvage(t *Task, files, outputs []string) *Result
}

// A Sharer knows at plan time with what its prompt begins, so that a plan can tell how much of it a service should have
// read shortly before.
type Sharer interface {
	// Shared returns the blocks in front that are to be kept, in order; none where nothing is. open is as for a
	// FileChecker.
	Shared(open func(path string) (io.ReadCloser, error)) []PromptBlock
}

// A PromptBlock is the beginning of a prompt up to a place at which a service is to keep it.
type PromptBlock struct {
	Digest string   // of what is known of it, and of who is asked; equal only for equal beginnings
	Chars  int64    // of what is known of the block
	Reads  []string // artifacts and accumulators that stand in it
}

// Traits are what the plan needs to know of a node's settings.
type Traits struct {
	Effect  string              // default effect: pure | idempotent | once | probe
	Outputs map[string]string   // declared values: name -> string | int | number | bool | list | map; ? = may be absent
	Words   map[string][]string // all that a value may be, where the settings say so
	Files   []string            // input files named in the settings, relative to the spec's folder
	Reads   []string            // artifacts and accumulators named in the settings
	Writes  []string            // artifacts named in the settings
	Appends []string            // accumulators named in the settings
	Paid    bool                // an attempt may cost money
	Ambient bool                // an attempt sees more than settings, files and reads name: a folder, a service
	Reaches bool                // an attempt starts tools that may reach files outside of its own folder
	Probes  bool                // with these settings a Prober can tell whether an attempt took effect
	Leaves  []string            // outputs and artifacts that a Salvager may find; "*": all that the node declares
	Prompt  *PromptEstimate     // for kinds that call a model: what is known of the size
	Secrets []string            // names of secrets the settings use
	Account string              // who is asked, and as whom: what one answer says of it holds for all that would ask it
	// Steady are the categories of failure that another attempt would end in as well: there is none unless the
	// specification asks for it.
	Steady []string
	// Categories are the categories of failure that the settings name, each with its path within With.
	Categories []Named
	// Formulas are the expressions in the settings that the kind evaluates itself.
	Formulas *Formulas
	// Watch are the folders whose files an attempt looks at, each with all that is in it: relative to that of the spec, or
	// absolute.
	Watch []string
	// Does is what an attempt does, in one short line without credentials: the command, the address, who is asked. Empty
	// where the name of the kind says it.
	Does string
	// Notes are facts worth showing in a plan, e.g. "files: F3, F4, F5, F1, F2".
	Notes []string
	// Details are facts that a plan shows beside the notes, and a graph does not.
	Details []string
	// Problems are mistakes in the settings that the schema cannot say: path within With
	// ("accept.0.extract.to") and text.
	Problems []Problem
}

// A Duration of settings is written as text such as 1m30s.
type Duration time.Duration

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// D returns it as what package time uses.
func (d Duration) D() time.Duration { return time.Duration(d) }

// A Problem is a mistake at a path of a node's settings.
type Problem struct{ Path, Text string }

// A Named is a name at a path of a node's settings.
type Named struct{ Path, Name string }

// PromptEstimate names the model and which inputs make the prompt, for cost ranges.
type PromptEstimate struct {
	Model     string
	Provider  string   // as price lists name it: anthropic, openai, ...; empty = unknown
	Chars     int64    // fixed text
	Files     []string // input files that become part of the prompt (sizes are in the plan)
	Reads     []string // artifacts and accumulators that do, sizes unknown
	MaxOutput int64    // tokens, 0 = unknown
}

// A Task is everything one attempt may see. Its functions may be called from the attempt's
// goroutines until Run returns.
type Task struct {
	Node                string
	Generation, Attempt int
	Failures            int // recorded failures of this generation before this attempt
	Kind                string
	With                json.RawMessage   // settings, every ${...} resolved
	Labels              map[string]string // never changes behaviour, except for the simulated agent's matching
	Seed                int64
	Effect              string
	Reads               []string          // artifacts and accumulators the node reads; nil when it declares none
	Writes              []string          // artifacts the node declares
	Outputs             map[string]string // values the node declares: name -> type
	Timeout             time.Duration     // of this attempt; already in ctx
	Silence             time.Duration
	Grace               time.Duration  // between the polite and the hard signal; > 0
	Reserve             float64        // US dollars reserved for this attempt; 0 = none
	Feedback            string         // reason of the last failure, when the policy gives it to the next attempt
	FailedWith          map[string]int // failures by category since the node was last given a fresh start; nil = none
	// Again reports whether a failure of a category, now, would be followed by another attempt of this node. Nil: never.
	Again func(category string) bool

	SpecDir string // absolute folder of the spec: working directory of local commands
	Out     string // absolute, existing, empty folder: artifacts are staged here by name
	// Untouched reports whether Out is known to be as empty as it was: then it need not be read. Nil: it is not known.
	Untouched func() bool
	Scratch   string // absolute, existing, empty folder outside the run, removed after the attempt
	// Spool is an absolute, existing folder inside the run that outlives the host, until the end of the
	// attempt is recorded. Only a Rescuer has one.
	Spool string
	// Carry returns an absolute folder outside the run that the attempts of one generation hand on, made by the first
	// call. It goes when the node has ended, and may be lost with the folder for temporary files. Nil: nothing is handed
	// on.
	Carry func() (string, error)
	// Begin is called right before that which may cost money or have an effect: an attempt that fails before has done
	// neither. Nil: nobody asks.
	Begin func()
	// TookEffect is called when that has ended well, before anything of it is kept, and says how: "exit status 0". It
	// returns when that is durable, where the attempt must not be repeated unasked. What fails afterwards is no
	// failure of the effect. Nil: nobody asks.
	TookEffect func(how string) error
	// Spare takes the content of a file that Keep has failed to keep, whatever the reason: elsewhere in the run, on
	// room that was held back for it. from is read from its beginning. Nil: there is no such place.
	Spare func(name string, from io.ReadSeeker) error
	// Cache is an absolute folder outside of any run for what can be had again, which need not be there yet and may be
	// lost, whole or in part, at any time. Empty: there is none.
	Cache string
	// Binary is the path of the running program, for kinds that start a helper of it.
	Binary string

	// Now is when the attempt began.
	Now time.Time
	// Formulas compiles the expressions of the settings, in the order of x.List.
	Formulas func(x *Formulas) ([]Formula, error)
	// File opens a declared input file, as it was when the plan was adopted.
	File func(path string) (io.ReadCloser, error)
	// Artifact opens the version of an artifact this node reads; os.ErrNotExist when no
	// ancestor has written it.
	Artifact func(name string) (io.ReadCloser, error)
	// Folder lists the files of an artifact that is a folder (its name ends in a slash) by their paths in it; Artifact
	// opens each by the name of the folder and its path. An empty folder in it has a path that ends in a slash.
	Folder func(name string) ([]string, error)
	// Entries returns the entries of an accumulator this node may see, oldest first, capped.
	Entries func(name string) ([]Entry, error)
	// Secret returns a named secret's value. The host masks it in everything that is kept.
	Secret func(name string) (string, error)
	// Mask has the host mask a value like a secret's, from now on. A kind calls it with every credential that it
	// hands to a child or a server and did not get through Secret. Nil: nothing is masked.
	Mask func(value string)
	// Keep creates a file in the node's own folder (prompt.md, raw-output.txt ...). An existing
	// file of an earlier attempt is never overwritten: the host renames it first.
	Keep func(name string) (io.WriteCloser, error)
	// Emit records a fact (LLM_CALL_*, GATE_RUN_*, ISSUE_*, PR_OPENED) and returns when it is
	// written. Other types are an error: the host records them. body is the payload without
	// node and call_id, which the host adds.
	Emit func(typ string, body any) error
	// Warn shows the user a line while the node is at work; no log keeps it. What is to be kept stands in the warnings
	// and notes of the Result.
	Warn func(msg string)
	// Beat reports to the host that the attempt is alive (silence limit).
	Beat func()
}

// An Entry is one text of an accumulator.
type Entry struct {
	Accumulator string            `json:"accumulator"`
	Text        string            `json:"text"`
	Meta        map[string]string `json:"meta,omitempty"` // printed as the entry's heading line
}

// A Result is what an attempt produced.
type Result struct {
	Values   map[string]any    // small named values, as declared; kept in events
	Writes   map[string]string // artifact name -> path under Task.Out (relative)
	Schemas  map[string]string // artifact name -> name of the declared schema that it was held to
	Entries  []Entry
	Usage    Usage
	CostUSD  *float64 // nil = unknown
	LeastUSD float64  // where CostUSD is unknown: part of it, which was reported
	Model    string   // that answered, where prices should go by it; empty = the one the settings name
	Warnings []string
	Notes    []LogLine
	// Survivors names processes that outlived the attempt in spite of everything.
	Survivors []string
}

// Usage counts tokens in four disjoint classes.
type Usage struct {
	Input, CacheRead, CacheWrite, Output int64
	// CacheWriteHour is how many of CacheWrite were written to be kept for an hour, which costs more than five minutes.
	CacheWriteHour int64
}

// Plus returns the sum of two usages.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Output: u.Output + v.Output, CacheWriteHour: u.CacheWriteHour + v.CacheWriteHour,
	}
}

// A LogLine is a small record for the run's logs: Log is "decision" or "quality", or "node" for fields of the one line
// that tells how the node ended.
type LogLine struct {
	Log, Type string
	Fields    map[string]any
}

// An Error says how an attempt failed.
type Error struct {
	Category    string // name in the plan's category table
	Message     string // one line
	Diagnostics string // at most 2,000 characters are kept
	RetryAfter  time.Duration
	WaitUntil   time.Time // absolute; uses no attempt
	Permanent   bool      // another attempt is useless whatever the policy says
	// Unknown says that the attempt may have had its effect all the same: the answer was lost. For
	// an effect that must not happen twice that is an attempt whose outcome has to be found out.
	Unknown bool
	Err     error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Fail returns an *Error of a category.
func Fail(category, message string) *Error { return &Error{Category: category, Message: message} }

// Failf is Fail with a message that is made as by fmt.Sprintf.
func Failf(category, format string, args ...any) *Error {
	return Fail(category, fmt.Sprintf(format, args...))
}

// Failure returns the *Error that err is or holds, else one of a category that says what err says.
func Failure(category string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return Fail(category, err.Error())
}

// Permanent wraps err so that no further attempt is made. It is the one way to say so.
func Permanent(err *Error) *Error {
	e := *err
	e.Permanent = true
	return &e
}

// ErrAtOnce is the cause of a cancelled ctx that leaves no time for politeness: what an attempt
// has started is killed without grace, because the program is about to end.
var ErrAtOnce = errors.New("stopped at once")

// A Registry is a set of kinds by name.
type Registry struct {
	kinds []Kind
	index map[string]Kind
}

// NewRegistry panics on two kinds of one name: that is a mistake in the program.
func NewRegistry(kinds ...Kind) *Registry {
	r := &Registry{index: map[string]Kind{}}
	for _, k := range kinds {
		if _, dup := r.index[k.Name]; dup {
			panic("nodes: two kinds named " + k.Name)
		}
		r.index[k.Name] = k
		r.kinds = append(r.kinds, k)
	}
	return r
}

// Kind returns the kind of a name.
func (r *Registry) Kind(name string) (Kind, bool) { k, ok := r.index[name]; return k, ok }

// Traits are those of settings of a kind; empty where nobody can say.
func (r *Registry) Traits(kind string, with json.RawMessage) Traits {
	if k, ok := r.index[kind]; ok {
		if tr, err := k.Describe(with); err == nil {
			return tr
		}
	}
	return Traits{}
}

// Does says what an attempt of a kind does with settings, see Traits.Does; empty where nobody can say.
func (r *Registry) Does(kind string, with json.RawMessage) string { return r.Traits(kind, with).Does }

// Kinds returns all kinds in the order of NewRegistry.
func (r *Registry) Kinds() []Kind { return r.kinds }

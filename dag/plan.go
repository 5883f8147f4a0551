// Package dag holds the plan of a run and its graph as plain data.
//
// It does no IO, reads no clock and knows nothing of specification languages and hosts. Of kinds of node it knows the
// control kinds (role.go), of a run's folder the names in it (own.go). Everything that can be printed has one order:
// plan order.
//
// Where to read: plan.go has the plan and its nodes, graph.go what is derived of it, policy.go what follows a
// failure.
package dag

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Format is the version of the plan: of its encoding, to which fields are only added, and of what it means. A plan of
// an earlier one is read as ever; it is not carried out any further, because its settings meant something else:
//
//	1  scripts of commands and checks were templates, and shells did not stop at the first command that failed
const Format = 2

// A Plan is a compiled specification: canonical data with a digest (see Digest).
// It is immutable once compiled; it may be read from any goroutine.
type Plan struct {
	Format   int       `json:"format"`
	Name     string    `json:"name"`
	Title    string    `json:"title,omitempty"`
	Seed     int64     `json:"seed,omitempty"`     // seed asked for by the spec; 0 = none
	Params   []Param   `json:"params,omitempty"`   // resolved values, by name
	Budget   Budget    `json:"budget,omitzero"`    // limits; zero means no limit
	Breakers []Breaker `json:"breakers,omitempty"` // by name
	// WhenFailed is what a failure that nothing allows does to the run: pause (default) | end.
	WhenFailed WhenFailed `json:"whenFailed,omitempty"`

	Pools []Pool `json:"pools,omitempty"` // by name
	// Escalations say what is done about questions, by type. Questions of a type without one wait for ever.
	Escalations []Escalation `json:"escalations,omitempty"`

	Categories   []Category    `json:"categories,omitempty"`   // by name: what each category of failure means
	Accumulators []Accumulator `json:"accumulators,omitempty"` // by name
	Files        []File        `json:"files,omitempty"`        // declared input files, by path
	Inputs       []File        `json:"inputs,omitempty"`       // files beside the spec that Node.Inputs name, by path
	Prices       []Price       `json:"prices,omitempty"`       // by model
	Phases       []Phase       `json:"phases,omitempty"`       // in spec order, for displays
	State        *StateDoc     `json:"state,omitempty"`        // what state.json says in words of the pipeline

	Ticks *Ticks `json:"ticks,omitempty"` // nil: one run does it

	Notify []Notify `json:"notify,omitempty"` // who is told what happens, in spec order

	Nodes []Node `json:"nodes"` // plan order: needs come before dependents
}

// Outdated reports whether a plan was made by an earlier version of the program, whose settings meant something else:
// it may be read and compared, and must not be carried out.
func (p *Plan) Outdated() bool { return p.Format > 0 && p.Format < Format }

// A Param is a declared parameter with the value this plan was compiled with.
type Param struct {
	Name  string          `json:"name"` // dotted path, as in --set agent.provider=claude
	Type  string          `json:"type"` // string, int, number, bool, list or map
	Value json.RawMessage `json:"value"`
}

// A Phase names a stretch of the run for progress displays: the nodes of Group and below.
type Phase struct {
	Name   string   `json:"name"`
	Group  string   `json:"group"`
	Counts *Counted `json:"counts,omitempty"` // what is counted; nil = nodes
	Parts  *Counted `json:"parts,omitempty"`  // what follow one another within it
	Steps  *Counted `json:"steps,omitempty"`  // within one of what is counted
}

// A Counted is what the values of a label are called.
type Counted struct {
	Label     string            `json:"label"`
	Unit      string            `json:"unit"`
	Decisions map[string]string `json:"decisions,omitempty"` // what logs call decisions about nodes that have the label
}

// WordOf is what logs call a decision about a node, nil for none; empty = what it is called everywhere.
func (p *Plan) WordOf(decision string, n *Node) string {
	for i := range p.Phases {
		x := &p.Phases[i]
		if n == nil || !x.Has(n) {
			continue
		}
		for _, c := range []*Counted{x.Steps, x.Counts, x.Parts} {
			if c != nil && c.Decisions[decision] != "" && n.Labels[c.Label] != "" {
				return c.Decisions[decision]
			}
		}
	}
	return ""
}

// Has reports whether a node belongs to the phase.
func (p *Phase) Has(n *Node) bool {
	return n.Group == p.Group || strings.HasPrefix(n.Group, p.Group+"/")
}

// A Show names values of a node that people follow.
type Show struct {
	As     string   `json:"as"`           // what they are together
	Values []string `json:"values"`       // names of outputs, the most important first
	Of     string   `json:"of,omitempty"` // label that tells nodes apart which show the same side by side
}

// A Salvage names what counts of the work of a node that has failed for good, where it is whole.
type Salvage struct {
	Files   []string `json:"files,omitempty"`   // of Node.Writes
	Outputs []string `json:"outputs,omitempty"` // of Node.Outputs
	On      []string `json:"on,omitempty"`      // categories of the failure; none = those of time limits
}

// Categories are those of the failures after which it counts. Unless it says otherwise, a time limit was reached: of an
// attempt, as a command says by its exit status, of all attempts together.
func (s *Salvage) Categories() []string {
	if len(s.On) == 0 {
		return []string{"stalled", "timeout", "deadline"}
	}
	return s.On
}

// Of reports whether something counts of a failure of a category.
func (s *Salvage) Of(category string) bool {
	return s != nil && slices.Contains(s.Categories(), category)
}

// A Publication is an artifact of a node that is put beside the spec, over nothing but what is expected there.
type Publication struct {
	File   string  `json:"file"`             // name of the artifact
	To     string  `json:"to"`               // path relative to the spec's folder
	Expect *string `json:"expect,omitempty"` // digest of what must be there, empty = none; nil = what was put there last
	Over   Over    `json:"over,omitempty"`   // fail (default) | keep | ask | replace
}

// An Over says what is done about a file that is not the expected one.
type Over string

// What is done about it. Nothing said is as OverFail, and so is OverAsk, which has the failure escalated.
const (
	OverKeep    Over = "keep"    // it stays, and the node completes
	OverAsk     Over = "ask"     // the node fails and a user is asked
	OverReplace Over = "replace" // it is replaced
)

// OverCategory is the category of a failure because of a file that is not the expected one.
const OverCategory = "published_over"

// A File is an input file that the spec names. Nodes read the copy made when the plan
// was adopted, never the file itself.
type File struct {
	Path   string `json:"path"`   // slash-separated, relative to the spec's folder
	Digest string `json:"digest"` // lower-case hex sha256 of the content
	Size   int64  `json:"size"`   // bytes
}

// An Accumulator is a named, capped, append-only list of texts (document order = plan order).
type Accumulator struct {
	Name  string `json:"name"`
	Path  string `json:"path"`            // live file, relative to the run's own folder
	Title string `json:"title,omitempty"` // first heading of the live file
	Field string `json:"field,omitempty"` // of passes.jsonl: whether a node appended to it; empty = Name
	Cap   int    `json:"cap,omitempty"`   // entries kept, oldest dropped first; 0 = no cap
}

// Budget bounds what a run may spend. Zero values mean "no limit".
type Budget struct {
	WarnUSD   USD      `json:"warnUSD,omitzero"`
	CapUSD    USD      `json:"capUSD,omitzero"`
	WarnTok   int64    `json:"warnTokens,omitempty"`
	CapTokens int64    `json:"capTokens,omitempty"`
	Wall      Duration `json:"wall,omitzero"` // longest time of activity, pauses not counted
	// LongestWait is how long a run waits for a service before it pauses instead; 0 = 24 hours.
	LongestWait Duration `json:"longestWait,omitzero"`
	// Failures is how many nodes may have failed without holding the run (see OnFail); 0 = no limit.
	Failures int64 `json:"failures,omitempty"`
}

// A Breaker is a named circuit breaker, shared by every node that names it.
type Breaker struct {
	Name     string   `json:"name"`
	Failures int      `json:"failures"`         // consecutive (or in Window) failures that open it
	Window   Duration `json:"window,omitzero"`  // 0 = consecutive failures count
	OpenFor  Duration `json:"openFor"`          // time until half-open
	Probes   int      `json:"probes"`           // attempts let through while half-open; successes that close it
	WhenOpen WhenOpen `json:"whenOpen"`         // wait | skip | continue | escalate
	Each     string   `json:"each,omitempty"`   // what counts as one: node (default), or attempt
	Key      string   `json:"key,omitempty"`    // identity across runs; default: name
	Counts   []string `json:"counts,omitempty"` // categories that count as failures; empty = those whose weight says so
	Asks     string   `json:"asks,omitempty"`   // type of its question; empty = AskBreaker
}

// An Escalation is what is done about the questions of a type.
type Escalation struct {
	Type        string   `json:"type"`
	Message     string   `json:"message,omitempty"` // said before what happened
	Options     []Option `json:"options,omitempty"` // those of the answers that are offered, in this order; none = all
	Recommended string   `json:"recommended,omitempty"`
	Default     string   `json:"default,omitempty"` // taken unasked when After has passed
	After       Duration `json:"after,omitzero"`    // 0 = never
}

// An Option is an answer that a question takes. In JSON a name alone is one too.
type Option struct {
	Name string `json:"name"`
	Does string `json:"does,omitempty"` // what it leads to, for people
	Text string `json:"text,omitempty"` // required | optional; empty = it asks for no text
}

// A Notify is somebody who is told what happens to the run: by a kind of work that takes a message along.
type Notify struct {
	On      []string        `json:"on,omitempty"` // ask | pause | fail | end | undo; none = all
	Kind    string          `json:"kind"`
	With    json.RawMessage `json:"with,omitempty"`
	Secrets []string        `json:"secrets,omitempty"`
	Timeout Duration        `json:"timeout"`        // of one try
	Most    int             `json:"most,omitempty"` // events that wait to be told; 0 = without bound
}

// A Pool bounds how many of its nodes run at once.
type Pool struct {
	Name string   `json:"name"`
	Size int      `json:"size"`
	Wait Duration `json:"wait,omitzero"` // longest wait of a node for its place; 0 = without limit
}

// A Price is a model's price per million tokens.
type Price struct {
	Model      string  `json:"model"`
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead,omitempty"`
	CacheWrite float64 `json:"cacheWrite,omitempty"` // kept for five minutes
	// CacheWriteHour is the price of what is kept for an hour; 0 = twice the input price, which is what
	// Anthropic charges, the only vendor that counts these tokens apart.
	CacheWriteHour float64 `json:"cacheWriteHour,omitempty"`
	Date           string  `json:"date,omitempty"` // when the price was true, yyyy-mm-dd
	Step           *Step   `json:"step,omitempty"` // other prices for long prompts
}

// A Step replaces a model's prices for a whole request whose prompt, cached tokens included,
// is longer than Above tokens. Zero prices mean "as below the step".
type Step struct {
	Above          int64   `json:"above"`
	Input          float64 `json:"input,omitempty"`
	Output         float64 `json:"output,omitempty"`
	CacheRead      float64 `json:"cacheRead,omitempty"`
	CacheWrite     float64 `json:"cacheWrite,omitempty"`
	CacheWriteHour float64 `json:"cacheWriteHour,omitempty"`
}

// A Category says what one kind of failure means, by one table in the schema.
type Category struct {
	Name     string       `json:"name"`               // rate_limited, truncated, auth, ...
	Class    Class        `json:"class"`              // transient | structural | soft | hard | fatal
	Then     Action       `json:"then"`               // retry | wait | stop | fail
	Attempts int          `json:"attempts,omitempty"` // overrides the node's default; 0 = node's policy
	Retry    *RetryChange `json:"retry,omitempty"`    // delays of its own (rate limit: base 60 s, cap 300 s)
	Breaker  float64      `json:"breaker,omitempty"`  // weight: 1 counts against the breaker, 0 does not
	Feedback bool         `json:"feedback,omitempty"` // the reason is told to the next attempt
	Account  bool         `json:"account,omitempty"`  // it concerns the account: all who ask it wait (Node.Account)
	Asks     string       `json:"asks,omitempty"`     // type of the question about such a failure; empty = AskFailure
}

// A Node is one piece of work: a kind, its settings, its edges and its policies.
type Node struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind"`
	Title   string          `json:"title,omitempty"`
	Short   string          `json:"short,omitempty"` // what short lines call it; see Called
	Show    *Show           `json:"show,omitempty"`
	With    json.RawMessage `json:"with,omitempty"` // canonical; ${...} left only where it reads recorded values
	Needs   []string        `json:"needs,omitempty"`
	AtLeast int             `json:"atLeast,omitempty"` // how many needs must have succeeded; 0 = see When and OnFail
	WaitAll bool            `json:"waitAll,omitempty"` // with AtLeast: waits for all needs to end, not for enough success
	Again   int             `json:"again,omitempty"`   // with AtLeast: how often failed needs run again before it fails
	When    string          `json:"when,omitempty"`    // CEL over recorded values and statuses of needs
	Always  bool            `json:"always,omitempty"`

	Dynamic bool              `json:"dynamic,omitempty"` // With holds ${...} to resolve before each attempt
	Outputs map[string]string `json:"outputs,omitempty"` // declared values: name -> type, see OutputType
	Reads   []string          `json:"reads,omitempty"`   // artifacts, patterns of them, and accumulators
	Writes  []string          `json:"writes,omitempty"`  // artifacts; those that end with a slash are folders
	Publish []Publication     `json:"publish,omitempty"` // artifacts that are put beside the spec
	Salvage *Salvage          `json:"salvage,omitempty"` // what counts of an attempt that failed for good; nil = nothing
	Appends []string          `json:"appends,omitempty"` // accumulators
	Files   []string          `json:"files,omitempty"`   // declared input files (keys of Plan.Files)

	Optional []string `json:"optional,omitempty"` // of Reads: patterns that need match nothing

	// Inputs are paths, patterns and folders (with a slash at the end) of files beside the spec, which the node reads
	// where they stand. Of a node with a Foreach they are there for its items. See InputsOf.
	Inputs []string `json:"inputs,omitempty"`

	Effect   Effect   `json:"effect"` // pure | idempotent | once | probe
	Retry    Retry    `json:"retry,omitzero"`
	Timeout  Timeout  `json:"timeout,omitzero"`
	Breaker  string   `json:"breaker,omitempty"`
	Pool     string   `json:"pool,omitempty"`
	Priority int      `json:"priority,omitempty"` // higher starts first, before the critical path
	Reserve  Amount   `json:"reserve,omitzero"`
	Estimate Estimate `json:"estimate,omitzero"`
	OnFail   OnFail   `json:"onFail,omitempty"`     // fail (default) | continue | skip | escalate | compensate
	Undo     *Undo    `json:"compensate,omitempty"` // what undoes the node's work once it is done
	Back     *Back    `json:"back,omitempty"`       // with FailCompensate: what a failure undoes; see Trigger
	Foreach  *Foreach `json:"foreach,omitempty"`    // run-time expansion only; plan-time foreach is already expanded
	// Milestone is the state that the run or a section is in once the node has completed; nil = none.
	Milestone *Declaration `json:"milestone,omitempty"`
	History   []string     `json:"history,omitempty"` // nodes whose records a route may read beside its needs
	Secrets   []string     `json:"secrets,omitempty"` // names only; filled in at the edge
	Account   string       `json:"account,omitempty"` // who is asked, as whom: what closes it holds all nodes that name it
	Paid      bool         `json:"paid,omitempty"`    // an attempt may cost money
	Ambient   bool         `json:"ambient,omitempty"` // sees more than it declares: a folder, a service (see reuse.Proof)
	Call      *Call        `json:"call,omitempty"`    // what is known of the model call it makes

	Group  string            `json:"group,omitempty"` // nests by /
	Labels map[string]string `json:"labels,omitempty"`
	Dir    string            `json:"dir,omitempty"` // folder of its files under the run's own folder
	Pos    string            `json:"-"`             // file:line:col in the spec, for messages; not in the digest
}

// A Declaration is the state that a node declares once it has completed.
type Declaration struct {
	State   string `json:"state"`
	Section string `json:"section,omitempty"` // empty = the run
	Stable  bool   `json:"stable"`            // resuming a run goes back to the last state that is
}

// FilesRead are the declared input files that a node reads, in the order in which its prompt names them where it has
// one.
func (n *Node) FilesRead() []string {
	if n.Call != nil && len(n.Call.Files) > 0 {
		return n.Call.Files
	}
	return n.Files
}

// Folder is the folder of the files of one generation, under the run's own folder.
func (n *Node) Folder(generation int) string {
	dir := cmp.Or(n.Dir, "nodes/"+n.ID)
	if generation > 1 {
		dir += ".g" + strconv.Itoa(generation)
	}
	return dir
}

// Retry says how often and after which delay a failed attempt is tried again.
// Delay before attempt n+1 after the n-th failure: min(Cap, Base*Factor^(n-1)) * (1 + Jitter*u),
// u in [0,1) from a hash of (seed, node, generation, n). Delays, when given, replaces the formula.
type Retry struct {
	Attempts int              `json:"attempts,omitempty"` // most attempts that may fail; 1 = no retry
	Stated   bool             `json:"stated,omitempty"`   // the specification says Attempts: no category allows more
	Base     Duration         `json:"base,omitzero"`
	Factor   float64          `json:"factor,omitempty"`
	Cap      Duration         `json:"cap,omitzero"`
	Jitter   float64          `json:"jitter,omitempty"`
	Delays   []Duration       `json:"delays,omitempty"`
	On       []CategoryPolicy `json:"on,omitempty"` // by category name
}

// A CategoryPolicy is a retry policy for one category of failure of one node.
type CategoryPolicy struct {
	Category string      `json:"category"`
	Then     Action      `json:"then,omitempty"`   // retry | wait | stop | fail; empty = by the table
	OnFail   OnFail      `json:"onFail,omitempty"` // instead of the node's, when the last failure is of this category
	Retry    RetryChange `json:"retry,omitzero"`
}

// Timeout bounds one attempt and the node as a whole.
type Timeout struct {
	Attempt Duration `json:"attempt,omitzero"`
	Growth  float64  `json:"growth,omitempty"` // factor from the third attempt on; 0 = 1
	Silence Duration `json:"silence,omitzero"` // longest time without output, for kinds that stream
	Grace   Duration `json:"grace,omitzero"`   // between the polite and the hard signal
	Total   Duration `json:"total,omitzero"`   // all attempts and waits together
}

// Amount is a most-it-may-cost reservation.
type Amount struct {
	USD    USD   `json:"usd,omitzero"`
	Tokens int64 `json:"tokens,omitempty"`
}

// Estimate is what a node is expected to take; zero fields are unknown.
type Estimate struct {
	Seconds float64 `json:"seconds,omitempty"`
	USD     USD     `json:"usd,omitzero"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// Call is what the plan knows of the model call that a node makes: the model and what the
// prompt is made of, for cost ranges.
type Call struct {
	Provider  string   `json:"provider,omitempty"` // vendor, as price lists name it; empty = nobody is paid
	Model     string   `json:"model,omitempty"`
	Chars     int64    `json:"chars,omitempty"`     // fixed text of the prompt
	Files     []string `json:"files,omitempty"`     // input files that become part of it (sizes in Plan.Files)
	Reads     []string `json:"reads,omitempty"`     // artifacts and accumulators that do
	MaxOutput int64    `json:"maxOutput,omitempty"` // tokens; 0 = unknown
	// Shared are the blocks with which the prompt begins and which the service is to keep for a while.
	Shared []Block `json:"shared,omitempty"`
}

// A Block is a part of a prompt's beginning.
type Block struct {
	Digest string   `json:"digest"` // equal for equal beginnings, up to what Reads hold
	Chars  int64    `json:"chars,omitempty"`
	Reads  []string `json:"reads,omitempty"` // artifacts and accumulators that stand in it
}

// Called is what people call the node on a short line.
func (n *Node) Called() string { return cmp.Or(n.Short, n.ID) }

// HistoryKey names the work of a node for what earlier runs took: the same node asks another provider
// or model for other money and time.
func (n *Node) HistoryKey() string {
	if n.Call == nil {
		return n.ID
	}
	return n.ID + " " + n.Call.Provider + "/" + n.Call.Model
}

// Costly reports whether an attempt of the node may cost something, or must not be repeated unasked.
func (n *Node) Costly() bool {
	return n.Paid || !n.Effect.Repeatable() || n.Reserve != Amount{} || n.Estimate.USD != 0
}

// Similarity is what nodes have in common that take about the same: the kind of work, the model, and what
// their specification expects of them.
type Similarity struct {
	Kind     string   `json:"kind"`
	Provider string   `json:"provider,omitempty"`
	Model    string   `json:"model,omitempty"`
	Estimate Estimate `json:"estimate,omitzero"`
}

// Similarity returns what nodes similar to n share with it.
func (n *Node) Similarity() Similarity {
	s := Similarity{Kind: n.Kind, Estimate: n.Estimate}
	if n.Call != nil {
		s.Provider, s.Model = n.Call.Provider, n.Call.Model
	}
	return s
}

// An Undo is an action that undoes what a node did.
type Undo struct {
	Kind    string          `json:"kind"`
	With    json.RawMessage `json:"with,omitempty"`
	Dynamic bool            `json:"dynamic,omitempty"` // With holds ${...} to resolve before each try
	Effect  Effect          `json:"effect,omitempty"`  // of the action; empty = idempotent
	Timeout Duration        `json:"timeout,omitzero"`  // of one try; 0 = that of the node
	// Plans of before Back said here what a failure of the node undoes.
	On     []string `json:"on,omitempty"`
	Rewind string   `json:"rewind,omitempty"`
	Most   int      `json:"most,omitempty"`
}

// A Back says what is undone when a node has failed under FailCompensate, and what then.
type Back struct {
	// To are nodes: they and what lies between them and the failed node is undone. Without All, none = nothing.
	To    []string `json:"to,omitempty"`
	All   bool     `json:"all,omitempty"` // everything above the failed node is
	Own   *Undo    `json:"own,omitempty"` // what is done about the failed node itself, before anything else
	Then  Then     `json:"then"`
	Times int      `json:"times,omitempty"` // with ThenAgain: how often at most; after that, ThenStop
	On    []string `json:"on,omitempty"`    // categories of failure; none = all. Others are as FailRun
}

// Foreach expands one node per item of a list recorded at run time. A node with a Foreach carries
// out nothing itself: its expansion completes it, and its items count in its place for the nodes
// that need it (all of them for plain needs, their number for AtLeast). Without items it counts as
// completed. Items need the foreach node whether they say so or not.
type Foreach struct {
	In       string          `json:"in"`               // CEL: a list
	Var      string          `json:"var"`              // name of the item in Template
	Key      string          `json:"key"`              // CEL over Var: the item's id part
	Template json.RawMessage `json:"template"`         // node in spec form with ${...}
	Most     int             `json:"most"`             // more items than this is an error
	Expect   int             `json:"expect,omitempty"` // how many items there should be; 0 = nobody says
	// Item is what is known of every item before there are any, for what they take: kind, estimate, reserve, retries,
	// and the call of a model. What follows from Template.
	Item *Node `json:"item,omitempty"`
}

// AccumulatorByName returns an accumulator of the plan.
func (p *Plan) AccumulatorByName(name string) (*Accumulator, bool) {
	k := slices.IndexFunc(p.Accumulators, func(a Accumulator) bool { return a.Name == name })
	if k < 0 {
		return nil, false
	}
	return &p.Accumulators[k], true
}

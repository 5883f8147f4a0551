package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/accumulate"
	"dagrun.dev/nodes/extract"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/httpc"
	"dagrun.dev/nodes/internal/simagent"
	"dagrun.dev/nodes/prompt"
	"dagrun.dev/nodes/validate"
	"dagrun.dev/nodes/verdict"
)

// settings are #Agent in Go.
type settings struct {
	Provider          string                     `json:"provider"`
	Model             string                     `json:"model"`
	Prompt            json.RawMessage            `json:"prompt"`
	System            *textSource                `json:"system"`
	Accept            []acceptStep               `json:"accept"`
	Answer            *answerSettings            `json:"answer"`
	To                string                     `json:"to"`
	Tools             []string                   `json:"tools"`
	MaxTurns          int                        `json:"maxTurns"`
	MaxUSD            float64                    `json:"maxUSD"`
	Session           string                     `json:"session"`
	Effort            string                     `json:"effort"`
	Thinking          json.RawMessage            `json:"thinking"`
	ByProvider        json.RawMessage            `json:"byProvider"` // has been laid over the others; see merged
	FallbackModels    []string                   `json:"fallbackModels"`
	MaxOutputTokens   int64                      `json:"maxOutputTokens"`
	Temperature       *float64                   `json:"temperature"`
	Give              []givenFile                `json:"give"`
	Report            string                     `json:"report"`
	OnDenial          string                     `json:"onDenial"`
	OnModelSwitch     string                     `json:"onModelSwitch"`
	FlatRate          bool                       `json:"flatRate"`
	Argv              []string                   `json:"argv"`
	Wrapper           []string                   `json:"wrapper"`
	Flags             []string                   `json:"flags"`
	BaseURL           string                     `json:"baseURL"`
	Env               map[string]json.RawMessage `json:"env"`
	Pass              []string                   `json:"pass"`
	Secrets           map[string]string          `json:"secrets"`
	Home              string                     `json:"home"`
	Params            map[string]json.RawMessage `json:"params"`
	API               string                     `json:"api"`
	Cache             string                     `json:"cache"`
	Headers           map[string]string          `json:"headers"`
	IdempotencyHeader string                     `json:"idempotencyHeader"`
	ExitGrace         duration                   `json:"exitGrace"`
	StartGap          duration                   `json:"startGap"`
	MaxOutputMB       int64                      `json:"maxOutputMB"`
	Command           *commandSettings           `json:"command"`
	Sim               *simSettings               `json:"sim"`

	given map[string]json.RawMessage // the settings that are written out, by name
	from  map[string]string          // where those of byProvider stand

	// text says that a shaped answer has a text beside it: a report, or what accept takes.
	text bool
}

type textSource struct {
	Text string `json:"text"`
	File string `json:"file"`
}

// An acceptStep has exactly one field.
type acceptStep struct {
	Extract    json.RawMessage `json:"extract"`
	Validate   json.RawMessage `json:"validate"`
	Accumulate json.RawMessage `json:"accumulate"`
	Verdict    json.RawMessage `json:"verdict"`
}

type givenFile struct {
	Artifact string `json:"artifact"`
	File     string `json:"file"`
	As       string `json:"as"`
	Unpack   bool   `json:"unpack"`
	Optional bool   `json:"optional"`

	Send []string `json:"send"`
}

type commandSettings struct {
	Prompt     string         `json:"prompt"`
	Parse      string         `json:"parse"`
	Field      string         `json:"field"`
	ErrorField string         `json:"errorField"`
	Errors     []errorPattern `json:"errors"`
}

type errorPattern struct {
	Match    string   `json:"match"`
	Category string   `json:"category"`
	Wait     duration `json:"wait"`
}

type simSettings struct {
	Answers string   `json:"answers"`
	Faults  string   `json:"faults"`
	Delay   duration `json:"delay"`
}

// A duration is written as text such as 1m30s.
type duration time.Duration

func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = duration(v)
	return err
}

// read decodes checked settings. Defaults are those of the schema, for callers that skipped it.
func read(with json.RawMessage) (*settings, error) {
	s := &settings{OnDenial: "warn", OnModelSwitch: "warn", Home: "own", MaxOutputMB: 256, ExitGrace: duration(10 * time.Second)}
	with, given, from, err := merged(with)
	if err != nil {
		return nil, &nodes.Error{Category: "config", Message: "settings", Err: err}
	}
	if err := accept.Decode(with, s); err != nil {
		return nil, err
	}
	s.given, s.from = given, from
	s.text = s.Report != "" || len(s.Accept) > 0
	if s.Command != nil {
		s.Command.Prompt = orElse(s.Command.Prompt, "stdin")
		s.Command.Parse = orElse(s.Command.Parse, "text")
	}
	if slices.Contains(services, s.Provider) {
		s.Report = "" // who writes no files gives the report as the answer
	}
	if s.Provider == "anthropic" && s.MaxOutputTokens == 0 {
		s.MaxOutputTokens = messagesMost
	}
	if s.MaxTurns == 0 {
		s.MaxTurns = 1
		if len(s.Tools) > 0 {
			s.MaxTurns = 30
		}
	}
	return s, nil
}

// holds reports whether a program of these settings gets a variable.
func (s *settings) holds(name string) bool {
	_, set := s.Env[name]
	_, secret := s.Secrets[name]
	return set || secret || os.Getenv(name) != ""
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// A part is one step's kind and its settings.
type part struct {
	accept.Kind
	with json.RawMessage
}

// parts returns the fields that are set; there should be one.
func (a acceptStep) parts() []part {
	all := []part{
		{extract.Kind, a.Extract},
		{validate.Kind, a.Validate},
		{accumulate.Kind, a.Accumulate},
		{verdict.Kind, a.Verdict},
	}
	return slices.DeleteFunc(all, func(p part) bool { return p.with == nil })
}

// steps returns the accept list, ready to be applied.
func (s *settings) steps() ([]accept.Step, error) {
	var steps []accept.Step
	for i, a := range s.Accept {
		for _, p := range a.parts() {
			step, err := p.Step(p.with)
			if err != nil {
				return nil, &nodes.Error{Category: "config", Message: fmt.Sprintf("accept.%d.%s", i, p.Name()), Err: err}
			}
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// proves reports whether an accept list that an answer has passed proves that it is whole. One that
// ended by itself is whole when anything was asked of it; one that may have been cut when it holds a
// page, whose end shows.
func (s *settings) proves(r *reply) bool {
	if s.Answer != nil || !r.Cutting { // an object shows whether it is whole
		return s.Answer != nil || len(s.Accept) > 0
	}
	return slices.ContainsFunc(s.Accept, func(a acceptStep) bool {
		var e struct {
			HTML json.RawMessage `json:"html"`
		}
		return json.Unmarshal(a.Extract, &e) == nil && len(e.HTML) > 0
	})
}

// Describe reads what the compiler must know of checked settings.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) {
	s, err := read(with)
	if err != nil {
		return nodes.Traits{}, err
	}
	d := describer{tr: nodes.Traits{
		Effect: "idempotent", Paid: true, Account: s.account(),
		Outputs: map[string]string{"chars": "int", "model": "string", "finish_reason": "string"},
	}}
	if err := d.prompt(s); err != nil {
		return nodes.Traits{}, err
	}
	if err := d.accept(s); err != nil {
		return nodes.Traits{}, err
	}
	d.answer(s)
	d.files(s)
	d.provider(s)
	return d.tr, nil
}

// CheckFiles holds the prompt's template against its variables, and warns of agents without any contract.
func (Kind) CheckFiles(with json.RawMessage, open func(path string) (io.ReadCloser, error)) ([]nodes.Problem, []string) {
	s, err := read(with)
	if err != nil {
		return []nodes.Problem{{Text: err.Error()}}, nil
	}
	problems, warnings := prompt.Check(s.Prompt, open)
	for i := range problems {
		problems[i].Path = strings.TrimSuffix("prompt."+problems[i].Path, ".")
	}
	if s.anyText() {
		warnings = append(warnings, "any text is accepted: the program does not say whether it failed, and neither answer, accept nor report says what a good answer is")
	}
	return problems, warnings
}

// anyText reports whether whatever the program prints is an answer, words about its failure too.
func (s *settings) anyText() bool {
	return s.Provider == "command" && s.command().Parse == "text" && s.Answer == nil && len(s.Accept) == 0 && s.Report == ""
}

// A describer collects the traits of an agent node.
type describer struct{ tr nodes.Traits }

func (d *describer) problem(path, format string, args ...any) {
	d.tr.Problems = append(d.tr.Problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// vendors are whose models a provider asks, where that is certain, as price lists name them.
var vendors = map[string]string{"claude": "anthropic", "anthropic": "anthropic", "codex": "openai", "openai": "openai", "gemini": "gemini"}

func (d *describer) prompt(s *settings) error {
	p, err := prompt.Describe(s.Prompt)
	if err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	d.merge("prompt", p)
	d.tr.Prompt = p.Prompt
	if d.tr.Prompt == nil {
		d.tr.Prompt = &nodes.PromptEstimate{}
	}
	d.tr.Prompt.Model, d.tr.Prompt.MaxOutput = s.Model, s.MaxOutputTokens
	d.tr.Prompt.Provider = vendors[s.Provider]
	var block struct {
		To string `json:"to"`
	}
	if json.Unmarshal(s.Prompt, &block) == nil && block.To != "" {
		d.problem("prompt.to", "an agent's prompt is not an artifact; leave it out")
	}
	if s.System != nil {
		if (s.System.Text == "") == (s.System.File == "") {
			d.problem("system", "want exactly one of text, file")
		}
		d.tr.Prompt.Chars += int64(utf8.RuneCountInString(s.System.Text))
		if s.System.File != "" {
			add(&d.tr.Files, s.System.File)
			add(&d.tr.Prompt.Files, s.System.File)
		}
	}
	return nil
}

func (d *describer) accept(s *settings) error {
	for i, a := range s.Accept {
		path := fmt.Sprintf("accept.%d", i)
		parts := a.parts()
		if len(parts) != 1 {
			d.problem(path, "want exactly one of extract, validate, accumulate, verdict")
		}
		for _, p := range parts {
			tr, err := p.DescribeStep(p.with)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", path, p.Name(), err)
			}
			d.merge(path+"."+p.Name(), tr)
		}
	}
	if s.To != "" {
		if slices.Contains(d.tr.Writes, s.To) {
			d.problem("to", "%s is written by a step of accept too", s.To)
		}
		add(&d.tr.Writes, s.To)
	}
	return nil
}

func (d *describer) files(s *settings) {
	taken := map[string]bool{}
	for i, g := range s.Give {
		path := fmt.Sprintf("give.%d", i)
		if (g.Artifact == "") == (g.File == "") {
			d.problem(path, "want exactly one of artifact, file")
			continue
		}
		if g.Optional && g.File != "" {
			d.problem(path+".optional", "only for an artifact: an input file is there or the plan fails")
		}
		if len(g.Send) > 0 && !g.Unpack {
			d.problem(path+".send", "only with unpack: it names files of an archive")
		}
		for k, pattern := range g.Send {
			if badPattern(pattern) {
				d.problem(fmt.Sprintf("%s.send.%d", path, k), "%q is no pattern of names; want one such as full-*.png", pattern)
			}
		}
		if g.Artifact != "" {
			add(&d.tr.Reads, g.Artifact)
		} else {
			add(&d.tr.Files, g.File)
		}
		if taken[g.name()] {
			d.problem(path, "two files are given as %s", g.name())
		}
		taken[g.name()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		if _, twice := s.Env[name]; twice {
			d.problem("secrets."+name, "the variable is set by env too")
		}
		add(&d.tr.Secrets, s.Secrets[name])
	}
}

func (d *describer) provider(s *settings) {
	for _, x := range s.unable() {
		path, rest, list := strings.Cut(x[0], ".")
		if path = orElse(s.from[path], path); list {
			path += "." + rest
		}
		d.problem(path, "%s", x[1])
	}
	d.tr.Notes, d.tr.Reaches = append(d.tr.Notes, s.unconfined()...), len(s.Tools) > 0 || s.Provider == "command"
	switch {
	case s.Provider == "command" && len(s.Argv) == 0:
		d.problem("argv", "missing: provider command needs the program")
	case s.Provider == "command" && s.Command != nil:
		s.Command.check(d)
	case s.Provider == "sim" && (s.Sim == nil || s.Sim.Answers == ""):
		d.problem("sim.answers", "missing: provider sim needs a file of answers")
	}
	d.cache(s)
	if s.Provider == "anthropic" || s.Provider == "openai" {
		d.http(s)
	}
	d.silence(s)
	if s.Session != "" && s.Home == "user" {
		d.problem("session", "not with home user: the agent's memory of its work is kept with the node, not with the user")
	}
	if s.Sim != nil {
		if _, err := simagent.ParseFaults(s.Sim.Faults); err != nil {
			d.problem("sim.faults", "%v", err)
		}
	}
}

// http finds what an API needs: it has no model of its own.
func (d *describer) http(s *settings) {
	if s.Model == "" {
		d.problem("model", "missing: provider %s has no default", s.Provider)
	}
	if s.BaseURL != "" && !strings.Contains(s.BaseURL, "${") {
		if err := httpc.CheckURL(s.BaseURL); err != nil {
			d.problem("baseURL", "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(s.Headers[name]) {
			d.problem("headers."+name, "HTTP cannot send it: a line break or another character that no header may hold")
		}
	}
	if tokens, ok := s.thinking(); ok && tokens > 0 && s.Provider == "anthropic" {
		if tokens >= s.MaxOutputTokens {
			d.problem("thinking", "%d tokens leave nothing for the answer: they count against maxOutputTokens, which is %d", tokens, s.MaxOutputTokens)
		}
		if s.Temperature != nil && *s.Temperature != 1 {
			d.problem("temperature", "provider anthropic refuses one while it thinks; leave it out, or thinking")
		}
	}
	if s.Temperature != nil && *s.Temperature > 1 && s.Provider == "anthropic" {
		d.problem("temperature", "provider anthropic takes 0 to 1, not %g", *s.Temperature)
	}
}

// merge adds the traits of a part; its problems are within path.
func (d *describer) merge(path string, p nodes.Traits) {
	for _, x := range p.Files {
		add(&d.tr.Files, x)
	}
	for _, x := range p.Reads {
		add(&d.tr.Reads, x)
	}
	for _, x := range p.Writes {
		add(&d.tr.Writes, x)
	}
	for _, x := range p.Appends {
		add(&d.tr.Appends, x)
	}
	for _, x := range p.Secrets {
		add(&d.tr.Secrets, x)
	}
	for _, x := range p.Refs {
		add(&d.tr.Refs, x)
	}
	d.tr.Notes = append(d.tr.Notes, p.Notes...)
	for name, typ := range p.Outputs {
		d.tr.Outputs[name] = typ
	}
	for _, x := range p.Categories {
		d.tr.Categories = append(d.tr.Categories, nodes.Named{Path: path + "." + x.Path, Name: x.Name})
	}
	for _, x := range p.Problems {
		d.problem(strings.TrimSuffix(path+"."+x.Path, "."), "%s", x.Text)
	}
}

func add(list *[]string, name string) {
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

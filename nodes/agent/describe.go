package agent

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/httpc"
	"dagrun.dev/nodes/internal/simagent"
)

// Traits are what the compiler must know.
func (s *settings) Traits() nodes.Traits {
	d := describer{tr: nodes.Traits{
		Effect: "idempotent", Paid: true, Account: s.account(), Does: strings.TrimSpace(s.Provider + " " + s.Model),
		Outputs: map[string]string{"chars": "int", "model": "string", "finish_reason": "string"},
	}}
	d.prompt(s)
	own := slices.Collect(maps.Keys(d.tr.Outputs))
	d.accept(s)
	d.leaves(s, own)
	d.answer(s)
	d.files(s)
	d.provider(s)
	return d.tr
}

// CheckFiles holds the prompt's template against its variables, and warns of agents without any contract.
func (s *settings) CheckFiles(open func(path string) (io.ReadCloser, error)) ([]nodes.Problem, []string) {
	problems, warnings := s.Prompt.CheckFiles(open)
	for i := range problems {
		problems[i].Path = strings.TrimSuffix("prompt."+problems[i].Path, ".")
	}
	if s.anyText() {
		warnings = append(warnings, "any text is accepted: the program does not say whether it failed, "+
			"and neither answer, accept nor report says what a good answer is")
	}
	return problems, warnings
}

// anyText reports whether whatever the program prints is an answer, words about its failure too.
func (s *settings) anyText() bool {
	contract := s.Answer != nil || len(s.Accept) > 0 || s.Report != ""
	return s.Provider == "command" && s.Command.Parse == "text" && !contract
}

// leaves names what accept takes out of a report file, which alone is there of an attempt that was cut. A service
// writes none, which is no mistake of a node whose provider is a parameter. own are the outputs of every agent.
func (d *describer) leaves(s *settings, own []string) {
	if s.Report == "" && !capability.Of(s.Provider).Service {
		return
	}
	d.tr.Leaves = append(slices.Sorted(maps.Keys(d.tr.Outputs)), d.tr.Writes...)
	d.tr.Leaves = slices.DeleteFunc(d.tr.Leaves, func(name string) bool { return slices.Contains(own, name) })
	if s.To != "" {
		d.tr.Leaves = append(d.tr.Leaves, s.To)
	}
}

// A describer collects the traits of an agent node.
type describer struct{ tr nodes.Traits }

func (d *describer) prompt(s *settings) {
	p := s.Prompt.Block()
	d.tr.Merge("prompt", p)
	d.tr.Prompt = p.Prompt
	d.tr.Prompt.Model, d.tr.Prompt.MaxOutput = s.Model, s.MaxOutputTokens
	d.tr.Prompt.Provider = capability.Of(s.Provider).Vendor
	if s.Prompt.To != "" {
		d.tr.Problemf("prompt.to", "an agent's prompt is not an artifact; leave it out")
	}
	if s.System != nil {
		d.tr.OneOf("system", "text, file", s.System.Text != "", s.System.File != "")
		d.tr.Prompt.Chars += int64(utf8.RuneCountInString(s.System.Text))
		d.tr.File(s.System.File)
		if s.System.File != "" {
			d.tr.Prompt.Files = append(d.tr.Prompt.Files, s.System.File)
		}
	}
}

func (d *describer) accept(s *settings) {
	for i, a := range s.Accept {
		d.tr.OneOf(fmt.Sprintf("accept.%d", i), "extract, validate, accumulate, verdict",
			a.Extract != nil, a.Validate != nil, a.Accumulate != nil, a.Verdict != nil)
	}
	for i, step := range s.steps {
		d.tr.Merge(s.at[i], accept.DescribeStep(step.(accept.Settings)))
	}
	d.tr.Write("to", s.To)
}

func (d *describer) files(s *settings) {
	taken := map[string]bool{}
	for i, g := range s.Give {
		path := fmt.Sprintf("give.%d", i)
		if !d.tr.OneOf(path, "artifact, file", g.Artifact != "", g.File != "") {
			continue
		}
		if g.Optional && g.File != "" {
			d.tr.Problemf(path+".optional", "only for an artifact: an input file is there or the plan fails")
		}
		if len(g.Send) > 0 && !g.Unpack {
			d.tr.Problemf(path+".send", "only with unpack: it names files of an archive")
		}
		for k, pattern := range g.Send {
			if badPattern(pattern) {
				d.tr.Problemf(fmt.Sprintf("%s.send.%d", path, k), "%q is no pattern of names; want one such as full-*.png", pattern)
			}
		}
		d.tr.Read(g.Artifact)
		d.tr.File(g.File)
		if taken[g.name()] {
			d.tr.Problemf(path, "two files are given as %s", g.name())
		}
		taken[g.name()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		if _, twice := s.Env[name]; twice {
			d.tr.Problemf("secrets."+name, "the variable is set by env too")
		}
		d.tr.Secret(s.Secrets[name])
	}
}

func (d *describer) provider(s *settings) {
	for _, x := range s.unable() {
		path, rest, list := strings.Cut(x.Path, ".")
		if path = cmp.Or(s.from[path], path); list {
			path += "." + rest
		}
		d.tr.Problemf(path, "%s", x.Text)
	}
	d.tr.Notes = append(d.tr.Notes, s.unconfined()...)
	d.tr.Reaches = len(s.Tools) > 0 || s.Provider == "command"
	switch {
	case s.Provider == "command" && len(s.Argv) == 0:
		d.tr.Problemf("argv", "missing: provider command needs the program")
	case s.Provider == "command":
		s.Command.check(d)
	case s.Provider == "sim" && s.Sim.Answers == "":
		d.tr.Problemf("sim.answers", "missing: provider sim needs a file of answers")
	}
	for i, model := range s.FallbackModels {
		if model == "" {
			d.tr.Problemf(fmt.Sprintf("fallbackModels.%d", i), "missing: the name of a model")
		}
	}
	d.cache(s)
	if capability.Of(s.Provider).Service {
		d.http(s)
	}
	if s.Provider == "gemini" || s.Provider == "command" && !s.Command.format().Stream {
		d.tr.Notes = append(d.tr.Notes, "timeout.silence does not count: the program prints its answer at its end")
	}
	if s.Session != "" && s.Home == "user" {
		d.tr.Problemf("session",
			"not with home user: the agent's memory of its work is kept with the node, not with the user")
	}
	if _, err := simagent.ParseFaults(s.Sim.Faults); err != nil {
		d.tr.Problemf("sim.faults", "%v", err)
	}
}

// http finds what an API needs: it has no model of its own.
func (d *describer) http(s *settings) {
	if s.Model == "" {
		d.tr.Problemf("model", "missing: provider %s has no default", s.Provider)
	}
	if s.BaseURL != "" && !strings.Contains(s.BaseURL, "${") {
		if err := httpc.CheckURL(s.BaseURL); err != nil {
			d.tr.Problemf("baseURL", "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(s.Headers[name]) {
			d.tr.Problemf("headers."+name,
				"HTTP cannot send it: a line break or another character that no header may hold")
		}
	}
	if tokens, ok := s.thinking(); ok && tokens > 0 && s.Provider == "anthropic" {
		if tokens >= s.MaxOutputTokens {
			d.tr.Problemf("thinking", "%d tokens leave nothing for the answer: they count against maxOutputTokens, which is %d",
				tokens, s.MaxOutputTokens)
		}
		if s.Temperature != nil && *s.Temperature != 1 {
			d.tr.Problemf("temperature", "provider anthropic refuses one while it thinks; leave it out, or thinking")
		}
	}
	if s.Temperature != nil && *s.Temperature > 1 && s.Provider == "anthropic" {
		d.tr.Problemf("temperature", "provider anthropic takes 0 to 1, not %g", *s.Temperature)
	}
}

// Shared returns what the plan knows of the blocks that the service is to keep: for the APIs each up to a border, for
// the claude agent what goes into its system text.
func (s *settings) Shared(open func(path string) (io.ReadCloser, error)) []nodes.PromptBlock {
	if s.Cache == "off" || !slices.Contains([]string{"claude", "anthropic", "openai"}, s.Provider) {
		return nil
	}
	p := s.Prompt.Sketch(open)
	if p == nil {
		return nil
	}
	system, err := s.System.read(open)
	if err != nil {
		return nil
	}
	last := len(p.Blocks) - 1
	if s.Provider == "claude" {
		if last = min(last, p.Fixed()); last > 0 {
			p.Blocks, last = []string{strings.Join(p.Blocks[:last], "")}, 1
		}
	}
	var list []nodes.PromptBlock
	before := s.Provider + "\n" + s.Model + "\n" + s.BaseURL + "\n" + system
	for i, text := range p.Blocks[:last] {
		chars := utf8.RuneCountInString(text)
		if i == 0 {
			chars += utf8.RuneCountInString(system)
		}
		before = digest(before + text)[:16]
		list = append(list, nodes.PromptBlock{Digest: before, Chars: int64(chars), Reads: p.Reads[i]})
	}
	return list
}

// answer describes the outputs that the fields of the answer are. It comes after accept, whose outputs it must not
// repeat.
func (d *describer) answer(s *settings) {
	if s.Answer == nil {
		return
	}
	if d.tr.Merge("answer.schema", nodes.Traits{Problems: s.mistakes}); s.shape == nil {
		return
	}
	d.tr.Words = s.shape.Words()
	outputs := s.shape.Outputs()
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if _, twice := d.tr.Outputs[name]; twice {
			d.tr.Problemf("answer.schema.properties."+name,
				"the node gives a value %q already, by itself or by accept; take another name", name)
			continue
		}
		d.tr.Outputs[name] = outputs[name]
	}
	if len(s.Answer.Else) > 0 {
		if _, err := s.shape.Parse(s.Answer.Else, "else"); err != nil {
			d.tr.Problemf("answer.else", "the values do not fit the schema: %v", err)
		}
	}
	d.tr.Prompt.Chars += int64(len(s.instruction()))
}

func (d *describer) cache(s *settings) {
	times := capability.Of(s.Provider).Keeps
	if s.Cache != "" && len(times) > 0 && !slices.Contains(times, s.Cache) {
		d.tr.Problemf("cache", "provider %s keeps nothing for %s; want one of %s",
			s.Provider, s.Cache, strings.Join(times, ", "))
	}
}

// check finds the mistakes of the settings that the schema cannot say.
func (c *commandSettings) check(d *describer) {
	if (c.Parse == "json" || c.Parse == "json-lines") && c.Field == "" {
		d.tr.Problemf("command.field", "missing: where the answer is in the JSON")
	}
	for i, e := range c.Errors {
		if _, err := regexp.Compile("(?i)" + e.Match); err != nil {
			d.tr.Problemf(fmt.Sprintf("command.errors.%d.match", i), "not a regular expression: %v", err)
		}
		path := fmt.Sprintf("command.errors.%d.category", i)
		d.tr.Categories = append(d.tr.Categories, nodes.Named{Path: path, Name: e.Category})
	}
}

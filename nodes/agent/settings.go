package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/accumulate"
	"dagrun.dev/nodes/agent/capability"
	"dagrun.dev/nodes/extract"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/shape"
	"dagrun.dev/nodes/prompt"
	"dagrun.dev/nodes/validate"
	"dagrun.dev/nodes/verdict"
)

// settings are #Agent in Go.
type settings struct {
	Provider          string                     `json:"provider"`
	Model             string                     `json:"model"`
	Prompt            prompt.Settings            `json:"prompt"`
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
	ByProvider        json.RawMessage            `json:"byProvider"` // has been laid over the others; see merge
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
	ExitGrace         nodes.Duration             `json:"exitGrace"`
	StartGap          nodes.Duration             `json:"startGap"`
	MaxOutputMB       int64                      `json:"maxOutputMB"`
	Command           commandSettings            `json:"command"`
	Sim               simSettings                `json:"sim"`

	given map[string]json.RawMessage // the settings that are written out, by name
	from  map[string]string          // where those of byProvider stand

	now   func() time.Time // the runner's clock, for "resets 3pm"
	steps []accept.Step    // of the accept list; each is accept.Settings
	at    []string         // where they stand

	// text says that a shaped answer has a text beside it: a report, or what accept takes.
	text bool
	// shape is that of the answer; nil without one, and where its schema has mistakes.
	shape    *shape.Shape
	mistakes []nodes.Problem
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
	Match    string         `json:"match"`
	Category string         `json:"category"`
	Wait     nodes.Duration `json:"wait"`
}

type simSettings struct {
	Answers string         `json:"answers"`
	Faults  string         `json:"faults"`
	Delay   nodes.Duration `json:"delay"`
}

// read decodes checked settings, or as much as can be read. Defaults are those of the schema, for callers that skipped
// it.
func read(with json.RawMessage) (*settings, error) {
	s := &settings{
		OnDenial: "warn", OnModelSwitch: "warn", Home: "own", MaxOutputMB: 256, ExitGrace: nodes.Duration(10 * time.Second),
		now: time.Now,
	}
	with, err := s.merge(with)
	if err != nil {
		return s, &nodes.Error{Category: "config", Message: "settings", Err: err}
	}
	if err := accept.Decode(with, s); err != nil {
		return s, err
	}
	for i, a := range s.Accept {
		for _, x := range []struct {
			kind nodes.Kind
			with json.RawMessage
		}{
			{extract.Kind, a.Extract}, {validate.Kind, a.Validate},
			{accumulate.Kind, a.Accumulate}, {verdict.Kind, a.Verdict},
		} {
			if x.with == nil {
				continue
			}
			at := fmt.Sprintf("accept.%d.%s", i, x.kind.Name)
			step, err := accept.ParseStep(x.kind, x.with)
			if err != nil {
				return s, &nodes.Error{Category: "config", Message: at, Err: err}
			}
			s.steps, s.at = append(s.steps, step), append(s.at, at)
		}
	}
	s.text = s.Report != "" || len(s.Accept) > 0
	s.Command.Parse = cmp.Or(s.Command.Parse, "text")
	if s.Answer != nil {
		if s.shape, s.mistakes = shape.Read(s.Answer.Schema); len(s.mistakes) > 0 {
			s.shape = nil
		}
	}
	if capability.Of(s.Provider).Service {
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

// merge returns settings with those that byProvider declares for their provider.
func (s *settings) merge(with json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(with)) == 0 {
		return with, nil
	}
	if err := json.Unmarshal(with, &s.given); err != nil {
		return nil, err
	}
	var by map[string]map[string]json.RawMessage
	var provider string
	if json.Unmarshal(s.given["byProvider"], &by) != nil || json.Unmarshal(s.given["provider"], &provider) != nil {
		return with, nil
	}
	delete(s.given, "byProvider")
	s.from = map[string]string{}
	for name, value := range by[provider] {
		s.given[name], s.from[name] = value, "byProvider."+provider+"."+name
	}
	return json.Marshal(s.given)
}

func (src *textSource) read(open func(path string) (io.ReadCloser, error)) (string, error) {
	switch {
	case src == nil:
		return "", nil
	case src.File == "":
		return src.Text, nil
	}
	return accept.ReadText(open, "system", src.File)
}

// An answerSettings says which shape the answer has.
type answerSettings struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Else   json.RawMessage `json:"else"`
	Record string          `json:"record"`
	Block  bool            `json:"block"`
}

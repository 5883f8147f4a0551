package exec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"dagrun.dev/nodes"
)

// settings are #Exec in Go.
type settings struct {
	Argv    []string                   `json:"argv"`
	Run     string                     `json:"run"`
	Env     map[string]json.RawMessage `json:"env"`
	Pass    []string                   `json:"pass"`
	Secrets map[string]string          `json:"secrets"`
	Dir     string                     `json:"dir"`
	Stdin   *stdin                     `json:"stdin"`
	Stdout  string                     `json:"stdout"`
	Exit    map[string]string          `json:"exit"`
	Limits  limits                     `json:"limits"`
	Probe   *probe                     `json:"probe"`
}

type probe struct {
	Argv []string `json:"argv"`
	Run  string   `json:"run"`
}

type stdin struct {
	Artifact string  `json:"artifact"`
	File     string  `json:"file"`
	Text     *string `json:"text"`
}

type limits struct {
	MemoryMB   uint64 `json:"memoryMB"`
	CPUSeconds uint64 `json:"cpuSeconds"`
	FileMB     uint64 `json:"fileMB"`
	OpenFiles  uint64 `json:"openFiles"`
}

func (s *settings) traits() nodes.Traits {
	tr := nodes.Traits{Effect: "idempotent", Ambient: true}
	problem := func(path, format string, args ...any) {
		tr.Problems = append(tr.Problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	switch {
	case len(s.Argv) > 0 && s.Run != "":
		problem("run", "give argv or run, not both")
	case len(s.Argv) == 0 && s.Run == "":
		problem("argv", "missing: what to run, as argv: [...] or run: \"...\"")
	case len(s.Argv) > 0 && s.Argv[0] == "":
		problem("argv.0", "the program's name is empty")
	}
	if in := s.Stdin; in != nil {
		given := 0
		if in.Artifact != "" {
			given++
			tr.Reads = append(tr.Reads, in.Artifact)
		}
		if in.File != "" {
			given++
			tr.Files = append(tr.Files, in.File)
		}
		if in.Text != nil {
			given++
		}
		if given != 1 {
			problem("stdin", "want exactly one of artifact, file, text")
		}
	}
	tr.Probes = s.Probe != nil
	if s.Probe != nil && (len(s.Probe.Argv) > 0) == (s.Probe.Run != "") {
		problem("probe", "want exactly one of argv, run")
	}
	if s.Stdout != "" {
		tr.Writes = append(tr.Writes, s.Stdout)
	}
	for _, status := range slices.Sorted(maps.Keys(s.Exit)) {
		if n, err := strconv.Atoi(status); err != nil || n < 1 || n > 255 {
			problem("exit."+status, "an exit status is a number from 1 to 255")
		}
		if name := s.Exit[status]; name != "ok" {
			tr.Categories = append(tr.Categories, nodes.Named{Path: "exit." + status, Name: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		if _, twice := s.Env[name]; twice {
			problem("secrets."+name, "the variable is set by env too")
		}
		if !slices.Contains(tr.Secrets, s.Secrets[name]) {
			tr.Secrets = append(tr.Secrets, s.Secrets[name])
		}
	}
	return tr
}

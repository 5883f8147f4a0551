package exec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/proc"
	"dagrun.dev/nodes/internal/shape"
)

// settings are #Exec in Go.
type settings struct {
	Argv    []string                   `json:"argv"`
	Script  string                     `json:"run"`
	Shell   shell                      `json:"shell"`
	Env     map[string]json.RawMessage `json:"env"`
	Pass    []string                   `json:"pass"`
	Secrets map[string]string          `json:"secrets"`
	Started []string                   `json:"programs"`
	Dir     string                     `json:"dir"`
	Stdin   *accept.From               `json:"stdin"`
	Stdout  string                     `json:"stdout"`
	Lines   string                     `json:"lines"`
	Shapes  []shaped                   `json:"shapes"`
	Exit    map[string]string          `json:"exit"`
	Limits  proc.Limits                `json:"limits"`
	ProbeBy *probe                     `json:"probe"`

	MaxOutputMB int64 `json:"maxOutputMB"`
}

// shaped is #ExecShape.
type shaped struct {
	Of     string          `json:"of"`
	Schema json.RawMessage `json:"schema"`
	Name   string          `json:"name"`
}

type probe struct {
	Argv   []string `json:"argv"`
	Script string   `json:"run"`
}

func (s *settings) Traits() nodes.Traits {
	tr := nodes.Traits{Effect: "idempotent", Ambient: true, Does: s.does(), Steady: []string{"exit_nonzero"}}
	switch {
	case len(s.Argv) > 0 && s.Script != "":
		tr.Problemf("run", "give argv or run, not both")
	case len(s.Argv) == 0 && s.Script == "":
		tr.Problemf("argv", "missing: what to run, as argv: [...] or run: \"...\"")
	case len(s.Argv) > 0 && s.Argv[0] == "":
		tr.Problemf("argv.0", "the program's name is empty")
	}
	switch script := s.Script != "" || s.ProbeBy != nil && s.ProbeBy.Script != ""; {
	case len(s.Shell) > 0 && !script:
		tr.Problemf("shell", "there is no script for it: argv is started without a shell; give run")
	case len(s.Shell) > 0:
		tr.Notes = append(tr.Notes, "shell: "+s.Shell.String())
	case script:
		tr.Details = append(tr.Details, "shell: "+s.Shell.String())
	}
	if s.Stdin != nil {
		s.Stdin.Describe(&tr, "stdin")
	}
	for _, name := range s.Started {
		tr.Read(name)
	}
	tr.Leaves = []string{"*"}
	if tr.Probes = s.ProbeBy != nil; tr.Probes {
		tr.OneOf("probe", "argv, run", len(s.ProbeBy.Argv) > 0, s.ProbeBy.Script != "")
	}
	tr.Write("stdout", s.Stdout)
	tr.Output("lines", s.Lines, "list")
	for i, x := range s.Shapes {
		at := fmt.Sprintf("shapes.%d", i)
		tr.Write(at+".of", x.Of)
		_, problems := shape.Read(x.Schema)
		tr.Merge(at+".schema", nodes.Traits{Problems: problems})
	}
	for _, status := range slices.Sorted(maps.Keys(s.Exit)) {
		if n, err := strconv.Atoi(status); err != nil || n < 1 || n > 255 {
			tr.Problemf("exit."+status, "an exit status is a number from 1 to 255")
		}
		if name := s.Exit[status]; name != "ok" {
			tr.Categories = append(tr.Categories, nodes.Named{Path: "exit." + status, Name: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		if _, twice := s.Env[name]; twice {
			tr.Problemf("secrets."+name, "the variable is set by env too")
		}
		tr.Secret(s.Secrets[name])
	}
	return tr
}

// mostDoes bounds what is shown of a command, in bytes.
const mostDoes = 100

// does is the command on one line: the arguments as a shell would take them, or the first lines of the script.
func (s *settings) does() string {
	if s.Script != "" {
		script := strings.ReplaceAll(s.Script, "$${", "${") // in settings that are still to be filled in, it stands for that
		return printable.Clip(printable.Line(firstLines(script)), mostDoes)
	}
	words := make([]string, 0, len(s.Argv))
	for size, word := 0, 0; word < len(s.Argv) && size <= mostDoes; word++ {
		w := s.Argv[word]
		if w == "" || strings.ContainsAny(w, " \t\n'\"$&|;<>()*?[]#~`\\") {
			w = "'" + strings.ReplaceAll(printable.Clip(w, mostDoes), "'", `'\''`) + "'"
		}
		words = append(words, w)
		size += len(w)
	}
	return printable.Clip(printable.Line(strings.Join(words, " ")), mostDoes)
}

// firstLines are those lines of a script that fill what is shown, without what only prepares: comments and set.
func firstLines(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || strings.HasPrefix(line, "set -") {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		if b.WriteString(line); b.Len() > mostDoes {
			break
		}
	}
	return b.String()
}

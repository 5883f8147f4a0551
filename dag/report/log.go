package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
)

// A LogFilter says which events to print, and how. The zero filter prints all as text.
type LogFilter struct {
	Node  string
	Types []string
	JSON  bool // the lines as they are on disk, each an object that begins with the kind "event"
}

// WriteLog prints the events of the run in an output directory, checked against their chain, and returns how many. An
// event that does not fit is an error; what stands before it has been printed.
func WriteLog(w io.Writer, dir string, f LogFilter) (shown int, err error) {
	tree, err := disk.Open(filepath.Join(dir, run.Dir))
	if err != nil {
		return 0, err
	}
	defer tree.Close()
	out := bufio.NewWriter(w)
	print := func(e *machine.Event, env *eventlog.Envelope) error {
		printed, err := f.write(out, e, env)
		if printed {
			shown++
		}
		return err
	}
	_, tail, err := eventlog.Read(tree, "events.ndjson", eventlog.Head{}, print)
	if err == nil && tail.Bytes > 0 && !f.JSON {
		fmt.Fprintf(out, "(line %d is not whole: %s)\n", tail.Line, tail.Why)
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return shown, err
}

func (f *LogFilter) write(out io.Writer, e *machine.Event, env *eventlog.Envelope) (printed bool, err error) {
	if len(f.Types) > 0 && !slices.Contains(f.Types, string(e.Type)) {
		return false, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(env.Payload, &fields); err != nil {
		return false, err
	}
	var node string
	if raw, ok := fields["node"]; ok {
		if err := json.Unmarshal(raw, &node); err != nil {
			return false, err
		}
	}
	if f.Node != "" && node != f.Node {
		return false, nil
	}
	if f.JSON {
		_, err := fmt.Fprintf(out, `{"kind":"event",%s`+"\n", bytes.TrimPrefix(env.Line, []byte("{")))
		return true, err
	}
	delete(fields, "node")
	at := e.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	_, err = fmt.Fprintf(out, "%6d  %s  %-20s %s  %s\n", e.Seq, at, e.Type, node, Plain(summary(fields)))
	return true, err
}

// summary prints the payload's other fields in a fixed order, long ones cut.
func summary(fields map[string]json.RawMessage) string {
	var b strings.Builder
	for i, name := range sortedNames(fields) {
		if i > 0 {
			b.WriteByte(' ')
		}
		v := string(fields[name])
		if r := []rune(v); len(r) > 120 {
			v = string(r[:120]) + "..."
		}
		fmt.Fprintf(&b, "%s=%s", name, v)
	}
	return b.String()
}

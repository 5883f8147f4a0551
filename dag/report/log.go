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
	JSON  bool // the lines as they are on disk
}

// WriteLog prints the events of the run in an output directory, checked against their chain. An
// event that does not fit is an error; what stands before it has been printed.
func WriteLog(w io.Writer, dir string, f LogFilter) error {
	tree, err := disk.Open(filepath.Join(dir, run.Dir))
	if err != nil {
		return err
	}
	defer tree.Close()
	out := bufio.NewWriter(w)
	_, tail, err := eventlog.Read(tree, "events.ndjson", eventlog.Head{}, func(e *machine.Event, env *eventlog.Envelope) error {
		return f.write(out, e, env)
	})
	if err == nil && tail.Bytes > 0 && !f.JSON {
		fmt.Fprintf(out, "(line %d is not whole: %s)\n", tail.Line, tail.Why)
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return err
}

func (f *LogFilter) write(out io.Writer, e *machine.Event, env *eventlog.Envelope) error {
	if len(f.Types) > 0 && !slices.Contains(f.Types, string(e.Type)) {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(env.Payload, &fields); err != nil {
		return err
	}
	var node string
	if raw, ok := fields["node"]; ok {
		if err := json.Unmarshal(raw, &node); err != nil {
			return err
		}
	}
	if f.Node != "" && node != f.Node {
		return nil
	}
	if f.JSON {
		line, err := envelopeJSON(env)
		if err != nil {
			return err
		}
		_, err = out.Write(append(line, '\n'))
		return err
	}
	delete(fields, "node")
	_, err := fmt.Fprintf(out, "%6d  %s  %-20s %s  %s\n", e.Seq, e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), e.Type, node, Plain(summary(fields)))
	return err
}

// summary prints the payload's other fields in a fixed order, long ones cut.
func summary(fields map[string]json.RawMessage) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for i, name := range names {
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

// envelopeJSON gives a line of the log its form on disk again: names in canonical order.
func envelopeJSON(env *eventlog.Envelope) ([]byte, error) {
	line := map[string]any{
		"event_id": env.EventID, "run_id": env.RunID, "ts": env.TS, "type": env.Type, "payload": json.RawMessage(env.Payload),
		"trace_id": env.TraceID, "span_id": env.SpanID, "prev_hash": env.PrevHash, "event_hash": env.EventHash,
	}
	if env.ParentSpanID != "" {
		line["parent_span_id"] = env.ParentSpanID
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the payload is canonical as it stands
	err := enc.Encode(line)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

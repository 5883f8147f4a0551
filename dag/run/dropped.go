package run

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// Dropped is what can still be read of the events that Options.Salvage cuts off. Nothing vouches for it, so
// nothing of it counts for the run: it is for the person who decides whether to pay again.
type Dropped struct {
	Events  int      // lines that still are events
	CostUSD dag.USD  // that their ends of attempts tell
	Paid    []string // nodes with a completed attempt that cost something, in log order
}

// readDropped reads the lines of a log from an offset on as far as they can be read, in any order and state.
func readDropped(fsys disk.FS, name string, from int64) (*Dropped, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &Dropped{}
	in := bufio.NewScanner(io.NewSectionReader(f, from, 1<<62))
	in.Buffer(nil, eventlog.MaxLine)
	for in.Scan() {
		d.add(in.Bytes())
	}
	if err := in.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) { // what follows so long a line is nobody's guess
		return nil, err
	}
	return d, nil
}

func (d *Dropped) add(line []byte) {
	var e struct {
		Type    machine.Type    `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	body, err := machine.DecodePayload(e.Type, e.Payload)
	if err != nil {
		return
	}
	d.Events++
	if b, ok := body.(*machine.FinishedBody); ok && b.CostUSD > 0 && !b.Reused {
		d.CostUSD += b.CostUSD
		if b.Status == machine.StatusCompleted && !slices.Contains(d.Paid, b.Node) {
			d.Paid = append(d.Paid, b.Node)
		}
	}
}

// some names the first few of a list.
func some(list []string) string {
	const most = 10
	text := strings.Join(list[:min(most, len(list))], ", ")
	switch more := len(list) - most; {
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	case len(list) == 0:
		text = "what failed"
	}
	return text
}

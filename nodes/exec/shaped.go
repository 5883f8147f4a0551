package exec

import (
	"encoding/json"
	"os"

	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/shape"
)

// shaped is #ExecShape.
type shaped struct {
	Of     string          `json:"of"`
	Schema json.RawMessage `json:"schema"`
	Name   string          `json:"name"`
}

// mostShaped bounds an artifact that is held to a shape, in bytes.
const mostShaped = 4 << 20

// hold holds an artifact in the staging folder to its shape.
func (x *shaped) hold(root *os.Root) error {
	sh, problems := shape.Read(x.Schema)
	if len(problems) > 0 {
		return nodes.Permanent(nodes.Fail("config", "shapes: "+problems[0].Text))
	}
	raw, err := regular.ReadIn(root, x.Of, mostShaped)
	if err == nil {
		_, err = sh.Parse(raw, x.Of)
	}
	if err != nil {
		return nodes.Fail("protocol", printable.Clip(err.Error(), 300))
	}
	return nil
}

package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"dagrun.dev/nodes"
)

// V-1: a temperature that was not sent is not recorded; zero is one.
func TestTemperatureOfACall(t *testing.T) {
	zero := 0.0
	for want, set := range map[bool]*settings{false: {Provider: "sim"}, true: {Provider: "sim", Temperature: &zero}} {
		raw, err := json.Marshal(started(&question{task: &nodes.Task{}, set: set, provider: cli{name: "claude"}}))
		if err != nil || strings.Contains(string(raw), `"temperature":0`) != want {
			t.Errorf("%s, want a temperature: %v (%v)", raw, want, err)
		}
	}
}

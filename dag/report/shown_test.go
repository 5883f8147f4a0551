package report

import (
	"encoding/json"
	"testing"
)

// Numbers are shown with two decimals at most; a text that looks like one is shown as it is.
func TestShortText(t *testing.T) {
	for raw, want := range map[string]string{
		`7`: "7", `7.126`: "7.13", `7.10`: "7.1", `0.01234`: "0.012", `1e20`: "1e20", `12345678901234567890`: "12345678901234567890",
		`"1.10"`: "1.10", `"0.50"`: "0.50", `"pass"`: "pass", `true`: "true", `[1.50]`: "[1.50]", ``: "",
	} {
		if got := shortText(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

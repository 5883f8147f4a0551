package transcript

import (
	"encoding/json"
	"testing"
)

// An absurd cost is unknown, not a failure and not free. R-7
func TestStrangeNumbers(t *testing.T) {
	for _, cost := range []string{"1e300", "-1"} {
		c := Transcript{}
		claudeSums(&c, object{"total_cost_usd": json.RawMessage(cost)})
		if c.cost != nil || len(c.warnings) != 1 {
			t.Errorf("%s: cost %v, warnings %q", cost, c.cost, c.warnings)
		}
	}
}

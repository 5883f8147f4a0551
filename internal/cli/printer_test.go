package cli

import (
	"testing"
	"time"

	"dagrun.dev/dag/report"
)

// An instant says its zone, and its day when that is not today.
func TestClock(t *testing.T) {
	now := time.Date(2026, 2, 28, 14, 23, 1, 0, time.Local)
	later := now.Add(48 * time.Hour)
	if got := clock(now)(later); got != report.Instant(later) {
		t.Error(got)
	}
	if got := clock(now)(now); got != now.Format("15:04:05 MST") {
		t.Error(got)
	}
}

package agent

import "time"

// WithClock returns the kind with another clock.
func WithClock(now func() time.Time) Kind { return Kind{now: now} }

package report

import (
	"strings"
	"time"

	"dagrun.dev/dag/machine"
)

// A BreakerStatus is a breaker that is not simply closed, or holds nodes for a quota.
type BreakerStatus struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Until time.Time `json:"until,omitzero"`
	Hold  time.Time `json:"hold,omitzero"`
	Cause string    `json:"cause,omitempty"`
}

// OpenBreakers returns the breakers of a run that are not simply closed, or hold nodes for a quota.
func OpenBreakers(st *machine.State, now time.Time) (list []BreakerStatus) {
	for _, b := range st.Breakers() {
		if b.State != "closed" || b.Hold.After(now) {
			s := NewBreakerStatus(&b.BreakerChangedBody, now)
			if b.Hold.After(now) {
				s.Hold = b.Hold
			}
			list = append(list, s)
		}
	}
	return list
}

// NewBreakerStatus returns how a breaker stands at an instant, by the last that was recorded of it: one whose
// time has passed is half-open, though nobody has written that down yet.
func NewBreakerStatus(b *machine.BreakerChangedBody, now time.Time) BreakerStatus {
	s := BreakerStatus{Name: b.Breaker, State: b.State, Until: b.Until, Cause: b.Cause}
	if b.State == "open" && !b.Until.IsZero() && !b.Until.After(now) {
		s.State, s.Until = "half-open", time.Time{}
	}
	return s
}

// String says what the breaker does to nodes, for people.
func (b BreakerStatus) String() string {
	text := b.Name + " is " + b.State + untilText(b.Until)
	if b.State == "half-open" {
		text += ", the next attempt tries it"
	}
	if !b.Hold.IsZero() {
		text = b.Name + " holds its nodes for a quota" + untilText(b.Hold)
	}
	return strings.TrimSuffix(text+": "+b.Cause, ": ")
}

// BreakerText says what has happened to a breaker; instant prints instants.
func BreakerText(b *machine.BreakerChangedBody, instant func(time.Time) string) string {
	what := "became half-open, one attempt tries it"
	switch {
	case onlyCounts(b):
		what = "counts " + Count(int(b.Counts.Failures), "failure")
	case b.State == "closed":
		what = "has closed"
	case b.State == "open":
		what = "opened"
	}
	if !b.Until.IsZero() {
		what += ", until " + instant(b.Until)
	}
	return strings.TrimSuffix(b.Breaker+" "+what+": "+b.Cause, ": ")
}

// onlyCounts reports whether a breaker has counted a failure and stays closed.
func onlyCounts(b *machine.BreakerChangedBody) bool {
	return b.State == "closed" && b.Counts.Failures > 0
}

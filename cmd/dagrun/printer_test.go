package main

import (
	"testing"
	"time"
)

// An instant on another day names the day.
func TestUntil(t *testing.T) {
	later := time.Now().Add(48 * time.Hour)
	if got := until(later); got != " until "+later.Format(time.DateTime) {
		t.Error(got)
	}
	if got := until(time.Time{}); got != "" {
		t.Error(got)
	}
}

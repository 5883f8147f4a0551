package evidence

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // machines without a zone database know the zones that programs name
)

// clock reads the moments that claude and codex print: "resets 10pm (America/New_York)", "resets Mar 15 at 12pm
// (Europe/London)", "reset at 3pm", "try again at Mar 10th, 2026 8:19 PM", "resets 6pm UTC".
var clock = lazily(`(?i)\b(?:resets?|try again)(?: at)? ` +
	`(?:([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? )?` +
	`(\d{1,2})(?::(\d\d))?(?: ?(am|pm)\b|\b)(?: \(([^()\n]+)\)| ((?-i:[A-Z]{2,5})(?:[+\-]\d\d?)?)\b)?`)

// offset is a zone by its distance from Greenwich: UTC+2, GMT-03:30.
var offset = lazily(`^(?:UTC|GMT)?([+-])(\d\d?)(?::?(\d\d))?$`)

// zoneOf returns a zone by its name in the zone database, or by its distance. ok is false for others: any guess could
// be half a day off.
func zoneOf(name string) (zone *time.Location, ok bool) {
	if m := offset().FindStringSubmatch(name); m != nil {
		hours, _ := strconv.Atoi(m[2])
		minutes, _ := strconv.Atoi("0" + m[3])
		east := hours*3600 + minutes*60
		if m[1] == "-" {
			east = -east
		}
		return time.FixedZone(name, east), hours <= 14 && minutes < 60
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// A wall is the time of a day as a clock in some zone shows it.
type wall struct {
	hour, minute int
	zone         *time.Location
}

func resetClock(text string, now time.Time) (time.Time, bool) {
	m := clock().FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, false
	}
	w := wall{zone: now.Location()}
	w.hour, _ = strconv.Atoi(m[4])
	w.minute, _ = strconv.Atoi(m[5])
	switch half := strings.ToLower(m[6]); {
	case half != "" && (w.hour < 1 || w.hour > 12), half == "" && m[5] == "", w.hour > 23, w.minute > 59:
		return time.Time{}, false
	case half == "am":
		w.hour %= 12
	case half == "pm":
		w.hour = w.hour%12 + 12
	}
	if name := m[7] + m[8]; name != "" {
		zone, ok := zoneOf(name)
		if !ok {
			return time.Time{}, false
		}
		w.zone = zone
	}
	if m[1] == "" {
		return w.next(now), true
	}
	month, err := time.Parse("Jan", m[1])
	if err != nil {
		return time.Time{}, false
	}
	day, _ := strconv.Atoi(m[2])
	year, _ := strconv.Atoi(m[3]) // 0 = not said
	return w.nearest(now, year, month.Month(), day)
}

// next returns the coming moment of a day, or the one that passed lately.
func (w wall) next(now time.Time) (t time.Time) {
	here := now.In(w.zone)
	for add := -1; add <= 2; add++ {
		if t = w.on(here.Year(), here.Month(), here.Day()+add); !t.Before(now.Add(-lately)) {
			break
		}
	}
	return t
}

// nearest returns the moment on a date; without a year (0) on the nearest one: a date that just passed is
// not next year. ok is false for a day that the calendar does not have.
func (w wall) nearest(now time.Time, year int, month time.Month, day int) (best time.Time, ok bool) {
	years := []int{year}
	if year == 0 {
		year = now.In(w.zone).Year()
		years = []int{year, year - 1, year + 1}
	}
	for _, year := range years {
		if time.Date(year, month, day, 12, 0, 0, 0, time.UTC).Day() != day {
			continue // November has no 31st
		}
		if t := w.on(year, month, day); !ok || t.Sub(now).Abs() < best.Sub(now).Abs() {
			best, ok = t, true
		}
	}
	return best, ok
}

// on returns the moment on a day. Of an hour that the clock shows twice it is the later one.
func (w wall) on(year int, month time.Month, day int) time.Time {
	t := time.Date(year, month, day, w.hour, w.minute, 0, 0, w.zone)
	if again := t.Add(time.Hour); again.In(w.zone).Hour() == t.Hour() && again.In(w.zone).Day() == t.Day() {
		return again
	}
	return t
}

// lately is how long a moment may have passed that still counts as the coming one; see floor.
const lately = 30 * time.Minute

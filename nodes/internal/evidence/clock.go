package evidence

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A wall is a moment as a wall clock and a calendar say it, each part known or not.
type wall struct {
	hour, minute int
	clock        bool
	month        time.Month
	day, year    int // 0 = not said
	weekday      time.Weekday
	onWeekday    bool
	tomorrow     bool
	zone         *time.Location
}

var (
	// intro stands before such a moment.
	intro  = regexp.MustCompile(`(?i)\b(?:resets?|try again|available(?: again)?|back|until|retry|renews?|refreshes)\b`)
	tokens = regexp.MustCompile(`\([A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)*\)|(?i:utc|gmt)\s?[+-]\d{1,2}(?::?\d\d)?\b|\d{1,2}:\d{2}(?::\d\d)?|[A-Za-z]+|\d+|[^\sA-Za-z\d]`)
	months = map[string]time.Month{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}
	days   = map[string]time.Weekday{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
)

// resetClock reads "resets 10pm (America/New_York)", "resets Mar 15 at 12pm (Europe/London)",
// "try again at Mar 10th, 2026 8:19 PM".
func resetClock(text string, now time.Time, zone *time.Location) (time.Time, bool) {
	for _, at := range intro.FindAllStringIndex(text, -1) {
		w, ok := parseWall(head(text[at[1]:], 120))
		if !ok {
			continue
		}
		if w.zone == nil {
			w.zone = zone
		}
		if t, ok := w.next(now); ok {
			return t, true
		}
	}
	return time.Time{}, false
}

// parseWall reads tokens as long as they can belong to a moment.
func parseWall(text string) (w wall, ok bool) {
	list := tokens.FindAllString(text, -1)
	for i := 0; i < len(list); i++ {
		tok := strings.ToLower(list[i])
		used := true
		switch {
		case len(tok) > 1 && tok[0] == '(':
			if w.zone = zoneOf(strings.Trim(list[i], "()")); w.zone == nil {
				return w, false // a zone nobody knows: any guess could be half a day off
			}
		case zoneOf(list[i]) != nil:
			w.zone = zoneOf(list[i])
		case slices.Contains(fillers, tok):
		case tok == "tomorrow":
			w.tomorrow = true
		case tok == "noon" || tok == "midnight":
			w.clock, w.minute, w.hour = true, 0, map[string]int{"noon": 12, "midnight": 0}[tok]
		case w.date(tok):
		case tok == "st" || tok == "nd" || tok == "rd" || tok == "th":
		case tok[0] >= '0' && tok[0] <= '9':
			n, good := w.number(tok, list[i+1:])
			if !good {
				return w, false
			}
			i += n
		default:
			used = false
		}
		if !used {
			break
		}
	}
	return w, w.clock
}

// fillers stand between the parts of a moment.
var fillers = []string{"at", "on", "after", "by", ",", "the", "next", ":", "-", "today", "around", "(", ")"}

// date takes a month or a weekday.
func (w *wall) date(tok string) bool {
	if len(tok) < 3 || tok[0] < 'a' || tok[0] > 'z' {
		return false
	}
	if m, ok := months[tok[:3]]; ok && w.month == 0 && strings.HasPrefix(strings.ToLower(m.String()), tok[:3]) && len(tok) <= 9 {
		w.month = m
		return true
	}
	if d, ok := days[tok[:3]]; ok && strings.HasSuffix(tok, "day") || ok && len(tok) <= 4 {
		w.weekday, w.onWeekday = d, true
		return true
	}
	return false
}

// number takes a clock time, a day or a year, and returns how many further tokens it used.
func (w *wall) number(tok string, rest []string) (used int, good bool) {
	next := ""
	if len(rest) > 0 {
		next = strings.ToLower(rest[0])
	}
	hour, minute, colon := strings.Cut(tok, ":")
	minute, _, _ = strings.Cut(minute, ":") // seconds do not matter
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	half := next
	if next == "a" || next == "p" { // a.m.
		half = next + "m"
	}
	switch {
	case half == "am" || half == "pm":
		if h < 1 || h > 12 || m > 59 {
			return 0, false
		}
		w.hour, w.minute, w.clock = h%12, m, true
		if half == "pm" {
			w.hour += 12
		}
		if half != next {
			return 4, true // a . m .
		}
		return 1, true
	case colon:
		if h > 23 || m > 59 {
			return 0, false
		}
		w.hour, w.minute, w.clock = h, m, true
		return 0, true
	case len(tok) == 4:
		w.year = h
		return 0, true
	case w.day == 0 && h >= 1 && h <= 31:
		w.day = h
		return 0, true
	}
	return 0, false
}

// next returns the moment that is meant: the coming one, or the one that passed lately. ok is false for
// a day that the calendar does not have.
func (w wall) next(now time.Time) (t time.Time, ok bool) {
	here := now.In(w.zone)
	switch {
	case w.month != 0 && w.day != 0:
		return w.nearest(now, here.Year())
	case w.tomorrow:
		return w.on(here.Year(), here.Month(), here.Day()+1), true
	case w.onWeekday:
		t := w.on(here.Year(), here.Month(), here.Day()+(int(w.weekday)-int(here.Weekday())+7)%7)
		if t.Before(now.Add(-lately)) {
			t = w.on(here.Year(), here.Month(), here.Day()+(int(w.weekday)-int(here.Weekday())+7)%7+7)
		}
		return t, true
	}
	for add := -1; ; add++ {
		if t := w.on(here.Year(), here.Month(), here.Day()+add); !t.Before(now.Add(-lately)) || add == 2 {
			return t, true
		}
	}
}

// nearest returns the moment on a date; without a year on the nearest one: a date that just passed is
// not next year.
func (w wall) nearest(now time.Time, year int) (best time.Time, ok bool) {
	years := []int{year, year - 1, year + 1}
	if w.year != 0 {
		years = []int{w.year}
	}
	for _, year := range years {
		if time.Date(year, w.month, w.day, 12, 0, 0, 0, time.UTC).Day() != w.day {
			continue // November has no 31st
		}
		if t := w.on(year, w.month, w.day); !ok || t.Sub(now).Abs() < best.Sub(now).Abs() {
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

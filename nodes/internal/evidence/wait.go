package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // machines without a zone database know the zones that providers name
)

// Waits that are said in words are never shorter than floor, and a moment that has passed
// since no more than lately means floor: the clocks of provider and runner differ, and some were
// still refused after the time.
const (
	floor  = 2 * time.Minute
	lately = 30 * time.Minute
	// longest is the longest believable wait for a plan limit.
	longest = 40 * 24 * time.Hour
)

// Reset returns when a plan limit ends by what a message says: numeric fields first, then a duration,
// then a date and clock time. now is the runner's clock, zone the zone of times that name none.
// ok is false when nothing can be read; the result is never earlier than a short while from now.
func Reset(text string, now time.Time, zone *time.Location) (until time.Time, ok bool) {
	text = head(text, 16000)
	for _, read := range []func(string, time.Time, *time.Location) (time.Time, bool){resetField, resetDuration, resetISO, resetClock} {
		until, ok := read(text, now, zone)
		if !ok || until.Sub(now) > longest {
			continue
		}
		if until.Before(now.Add(time.Minute)) {
			until = now.Add(floor)
		}
		return until.UTC(), true
	}
	return time.Time{}, false
}

var (
	fieldAt  = regexp.MustCompile(`(?i)"?(?:resets?_?at|reset_?time|resets?(?: at)?)"?\s*[:=]?\s*"?(\d{10}(?:\d{3})?)(?:\.\d+)?\b`)
	fieldIn  = regexp.MustCompile(`(?i)"?(?:resets?_in_seconds|resets?_in|retry_after_seconds)"?\s*[:=]\s*"?(\d+(?:\.\d+)?)`)
	pipeTime = regexp.MustCompile(`\|(\d{10})(?:\d{3})?\b`) // "usage limit reached|1749924000"
)

func resetField(text string, now time.Time, _ *time.Location) (time.Time, bool) {
	if m := fieldAt.FindStringSubmatch(text); m != nil {
		return epoch(m[1]), true
	}
	if m := fieldIn.FindStringSubmatch(text); m != nil {
		s, err := strconv.ParseFloat(m[1], 64)
		return now.Add(time.Duration(s * float64(time.Second))), err == nil && s < longest.Seconds()
	}
	if m := pipeTime.FindStringSubmatch(text); m != nil {
		return epoch(m[1]), true
	}
	return time.Time{}, false
}

func epoch(digits string) time.Time {
	n, _ := strconv.ParseInt(digits, 10, 64) // 10 or 13 digits fit
	if len(digits) == 13 {
		return time.UnixMilli(n)
	}
	return time.Unix(n, 0)
}

var (
	unit = `(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|milliseconds?|ms)`
	// span is a duration in words: "5 days 22 hours 11 minutes", "1h2m3.5s", "90 seconds".
	span = `(\d+(?:\.\d+)?\s*` + unit + `(?:(?:\s*,\s*|\s+and\s+|\s*)\d+(?:\.\d+)?\s*` + unit + `)*)\b`
	// after introduces one.
	after   = regexp.MustCompile(`(?i)(?:(?:again|resets?|available|retry|wait|back|renews?)[^\n]{0,30}?\b(?:in|after|for):?|retry[-_ ]?after"?:?|retry_?delay"?:?|wait(?:ing)?|backoff)\s*"?(?:about |another |approximately )?` + span)
	afterMs = regexp.MustCompile(`(?i)retry[-_ ]?after[-_ ]?ms"?\s*[:=]\s*"?(\d{1,15})\b`)
	// afterNum introduces seconds, which are not the beginning of a date or of a clock time.
	afterNum = regexp.MustCompile(`(?i)(?:retry[-_ ]?after"?\s*[:=]?|retry_?delay"?\s*[:=]|(?:retry|try again) (?:in|after))\s*"?(\d+(?:\.\d+)?)(?:$|[^\w:/.-]|\.(?:$|\D))`)
	// afterClock introduces hours, minutes and seconds: "resets in 02:15:30". Behind "after" it is a time of day.
	afterClock = regexp.MustCompile(`(?i)(?:again|resets?|available|retry|wait|back|renews?)[^\n]{0,30}?\bin:?\s*(\d{1,3}):(\d\d)(?::(\d\d))?\b`)
	piece      = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)\s*(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|milliseconds?|ms|m|seconds?|secs?|s)`)
)

func resetDuration(text string, now time.Time, _ *time.Location) (time.Time, bool) {
	d, ok := Delay(text)
	return now.Add(d), ok
}

// Delay returns the wait that a message asks for in words: "try again in 20s", "retry-after: 30".
func Delay(text string) (time.Duration, bool) {
	text = head(text, 16000)
	var total float64
	if m := after.FindStringSubmatch(text); m != nil {
		for _, p := range piece.FindAllStringSubmatch(m[1], -1) {
			n, _ := strconv.ParseFloat(p[1], 64)
			total += n * seconds(strings.ToLower(p[2]))
		}
	} else if m := afterClock.FindStringSubmatch(text); m != nil {
		for _, part := range m[1:4] {
			n, _ := strconv.ParseFloat(part, 64)
			total = total*60 + n // hours, minutes, and seconds where there are none are none
		}
	} else if m := afterMs.FindStringSubmatch(text); m != nil {
		ms, _ := strconv.ParseFloat(m[1], 64)
		total = ms / 1000
	} else if m := afterNum.FindStringSubmatch(text); m != nil {
		total, _ = strconv.ParseFloat(m[1], 64)
	} else {
		return 0, false
	}
	if total <= 0 || total > longest.Seconds() {
		return 0, false
	}
	return time.Duration(total * float64(time.Second)), true
}

func seconds(unit string) float64 {
	switch {
	case strings.HasPrefix(unit, "ms") || strings.HasPrefix(unit, "milli"):
		return 0.001
	case unit[0] == 'w':
		return 7 * 86400
	case unit[0] == 'd':
		return 86400
	case unit[0] == 'h':
		return 3600
	case unit[0] == 'm':
		return 60
	}
	return 1
}

var iso = regexp.MustCompile(`\b(\d{4}-\d\d-\d\d)(?:[T ]|,? at )(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)?`)

func resetISO(text string, _ time.Time, zone *time.Location) (time.Time, bool) {
	m := iso.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, false
	}
	clock := m[2]
	if len(clock) == 5 {
		clock += ":00"
	}
	switch off := strings.ReplaceAll(m[3], ":", ""); off {
	case "":
		t, err := time.ParseInLocation("2006-01-02 15:04:05", m[1]+" "+clock, zone)
		return t, err == nil
	case "Z", "UTC":
		t, err := time.ParseInLocation("2006-01-02 15:04:05", m[1]+" "+clock, time.UTC)
		return t, err == nil
	default:
		t, err := time.Parse("2006-01-02 15:04:05 -0700", m[1]+" "+clock+" "+off)
		return t, err == nil
	}
}

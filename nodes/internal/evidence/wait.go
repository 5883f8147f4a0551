package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Waits that are said in words are never shorter than floor, and a moment that has passed
// since no more than lately means floor: the clocks of provider and runner differ, and some were
// still refused after the time.
const (
	floor = 2 * time.Minute
	// longest is the longest wait that is believed; how long a run really waits is for the plan to say.
	longest = 10 * 366 * 24 * time.Hour
)

// resets read a moment, the surest way first.
var resets = []func(text string, now time.Time) (time.Time, bool){resetField, resetDuration, resetISO, resetClock}

// resetAt returns when a plan limit ends by what a message says: numeric fields first, then a duration,
// then a date and clock time. now is the runner's clock; times that name no zone are in its own.
// ok is false when nothing can be read; the result is never earlier than a short while from now, and it
// is handed on however late it is.
func resetAt(text string, now time.Time) (until time.Time, ok bool) {
	text = head(text, mostText)
	for _, read := range resets {
		until, ok := read(text, now)
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
	// fieldAt are seconds or milliseconds since 1970, in a field or behind a bar ("usage limit reached|1749924000").
	fieldAt = lazily(`(?i)(?:"?resets?_?at"?\s*[:=]\s*"?|\|\s*)(\d{10})(\d{3})?\b`)
	fieldIn = lazily(`(?i)"?resets?_in(?:_seconds)?"?\s*[:=]\s*"?(\d+(?:\.\d+)?)`)
)

func resetField(text string, now time.Time) (time.Time, bool) {
	if m := fieldAt().FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64)
		return time.Unix(seconds, 0), true
	}
	if m := fieldIn().FindStringSubmatch(text); m != nil {
		s, err := strconv.ParseFloat(m[1], 64)
		return now.Add(time.Duration(s * float64(time.Second))), err == nil && s < longest.Seconds()
	}
	return time.Time{}, false
}

var (
	unit = `(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|milliseconds?|ms)`
	// span is a duration in words: "5 days 22 hours 11 minutes", "1h2m3.5s", "90 seconds".
	span = `(\d+(?:\.\d+)?\s*` + unit + `(?:(?:\s*,\s*|\s+and\s+|\s*)\d+(?:\.\d+)?\s*` + unit + `)*)\b`
	// wholeSpan is a text that is a span and nothing else.
	wholeSpan = lazily(`(?i)^` + span + `$`)
	// after introduces a span.
	after = lazily(`(?i)(?:(?:again|resets?|retry)[^\n]{0,30}?\b(?:in|after):?|` +
		`retry[-_ ]?after"?:?|retry_?delay"?:?)\s*"?(?:about )?` + span)
	afterMs = lazily(`(?i)retry[-_ ]?after[-_ ]?ms"?\s*[:=]\s*"?(\d{1,15})\b`)
	// afterNum introduces seconds, which are not the beginning of a date or of a clock time.
	afterNum = lazily(`(?i)(?:retry[-_ ]?after"?\s*[:=]?|(?:retry|try again) (?:in|after))\s*"?` +
		`(\d+(?:\.\d+)?)(?:$|[^\w:/.-]|\.(?:$|\D))`)
	piece = lazily(`(?i)(\d+(?:\.\d+)?)\s*` +
		`(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|milliseconds?|ms|m|seconds?|secs?|s)`)
)

func resetDuration(text string, now time.Time) (time.Time, bool) {
	d, ok := delay(text)
	return now.Add(d), ok
}

// delay returns the wait that a message asks for: "try again in 20s", "retry-after: 30".
func delay(text string) (time.Duration, bool) {
	text = head(text, mostText)
	var d time.Duration
	if m := after().FindStringSubmatch(text); m != nil {
		d = spanOf(m[1])
	} else if m := afterMs().FindStringSubmatch(text); m != nil {
		d = units(m[1], time.Millisecond)
	} else if m := afterNum().FindStringSubmatch(text); m != nil {
		d = units(m[1], time.Second)
	}
	return d, d > 0
}

// spanOf sums up the pieces of a span; 0 when it is longer than what is believed.
func spanOf(text string) time.Duration {
	var total float64
	for _, p := range piece().FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseFloat(p[1], 64)
		total += n * seconds(strings.ToLower(p[2]))
	}
	if total > longest.Seconds() {
		return 0
	}
	return time.Duration(total * float64(time.Second))
}

// lengths are the units by their first letter, in seconds.
var lengths = map[byte]float64{'w': 7 * 86400, 'd': 86400, 'h': 3600, 'm': 60, 's': 1}

func seconds(unit string) float64 {
	if strings.HasPrefix(unit, "ms") || strings.HasPrefix(unit, "milli") {
		return 0.001
	}
	return lengths[unit[0]]
}

var iso = lazily(
	`\b(\d{4}-\d\d-\d\d)(?:[T ]|,? at )(\d\d:\d\d)(:\d\d)?(?:\.\d+)?\s*(Z|UTC|[+-]\d\d:?\d\d)?`)

func resetISO(text string, now time.Time) (time.Time, bool) {
	m := iso().FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, false
	}
	layout, clock, zone := "2006-01-02 15:04", m[1]+" "+m[2], now.Location()
	switch off := strings.ReplaceAll(m[4], ":", ""); off {
	case "":
	case "Z", "UTC":
		zone = time.UTC
	default:
		layout, clock = layout+" -0700", clock+" "+off
	}
	t, err := time.ParseInLocation(layout, clock, zone)
	return t, err == nil
}

var number = regexp.MustCompile(`^\d{1,18}(?:\.\d{1,18})?$`)

// units returns a plain decimal number of units; 0 when it is none or too large for a wait.
func units(text string, unit time.Duration) time.Duration {
	if text = strings.TrimSpace(text); !number.MatchString(text) {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v*unit.Seconds() > longest.Seconds() {
		return 0
	}
	return time.Duration(v * float64(unit))
}

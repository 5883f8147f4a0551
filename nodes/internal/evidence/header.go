package evidence

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// shortest is waited where a server asks for less.
	shortest = 500 * time.Millisecond
	// skewMost is how far the server's clock and ours may be apart for its own to be used.
	skewMost = 24 * time.Hour
)

// headerWait is how long a server asks to be left alone: retry-after-ms, else Retry-After; on status
// 429 else the headers that tell when a limit is renewed. 0 means that it does not say, or
// nothing that can be believed: the past, no number, more than some years.
func headerWait(status int, h http.Header, now time.Time) time.Duration {
	if d := believed(millis(h)); d > 0 {
		return d
	}
	if d := believed(retryAfter(h, serverNow(h, now))); d > 0 || status != http.StatusTooManyRequests {
		return d
	}
	return believed(renewal(h, now))
}

func believed(d time.Duration) time.Duration {
	if d <= 0 || d > longest {
		return 0
	}
	return max(d, shortest)
}

func millis(h http.Header) (d time.Duration) {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		for _, v := range h.Values(name) {
			d = max(d, units(v, time.Millisecond))
		}
	}
	return d
}

// retryAfter reads seconds, a date or a length such as 30s; of several the longest.
func retryAfter(h http.Header, now time.Time) (d time.Duration) {
	for _, v := range h.Values("Retry-After") {
		for _, part := range append(strings.Split(v, ","), v) { // a date holds a comma
			d = max(d, later(part, now))
		}
	}
	return d
}

// moment reads a number: seconds from now, or a moment in seconds or milliseconds since 1970.
func moment(text string, now time.Time) time.Duration {
	if !number.MatchString(text) {
		return 0
	}
	v, _ := strconv.ParseFloat(text, 64)
	switch {
	case v >= 1e11 && v < 1e14:
		return time.UnixMilli(int64(v)).Sub(now)
	case v >= 1e9 && v < 1e11:
		return time.Unix(int64(v), 0).Sub(now)
	}
	return units(text, time.Second)
}

var layouts = []string{
	http.TimeFormat, time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC, time.RFC3339Nano,
	"Mon, _2 Jan 2006 15:04:05 MST", "Mon, _2 Jan 2006 15:04:05 -0700",
}

func date(text string) (time.Time, bool) {
	for _, layout := range layouts {
		t, err := time.Parse(layout, text)
		// The name of a zone that is not known is read as if it were no distance from Greenwich.
		if zone, offset := t.Zone(); err == nil && (offset != 0 || zone == "" || zone == "GMT" || zone == "UTC") {
			return t, true
		}
	}
	return time.Time{}, false
}

// serverNow is what the server's clock shows, if it says so and the two clocks are not too far apart:
// its dates go by its clock.
func serverNow(h http.Header, now time.Time) time.Time {
	t, ok := date(h.Get("Date"))
	if skew := t.Sub(now).Abs(); ok && skew > 5*time.Second && skew < skewMost {
		return t
	}
	return now
}

// renewal is the time until the limit that is used up is renewed; where no header says which
// one that is, the longest.
func renewal(h http.Header, now time.Time) time.Duration {
	if d := believed(later(h.Get(unified+"reset"), now)); d > 0 {
		return d
	}
	var used, all time.Duration
	for name, values := range h { // the longest of them: any order will do
		name = strings.ToLower(name)
		if !strings.Contains(name, "ratelimit") || !strings.Contains(name, "reset") || len(values) == 0 {
			continue
		}
		d := believed(later(values[0], now))
		left := strings.TrimSpace(h.Get(strings.Replace(name, "reset", "remaining", 1)))
		state := h.Get(strings.Replace(name, "reset", "status", 1))
		switch {
		case left == "0" || state == "rejected":
			used = max(used, d)
		case strings.HasPrefix(state, "allowed"): // this one is not it
		default:
			all = max(all, d)
		}
	}
	return cmp.Or(used, all, policy(h.Values("Ratelimit")))
}

// unified begins the headers that tell of the limit of a plan, in contrast to throttling.
const unified = "Anthropic-Ratelimit-Unified-"

// planLimit is when the limit of a plan is renewed, which is not throttling: it takes hours.
func planLimit(h http.Header, now time.Time) (time.Time, bool) {
	state := strings.ToLower(h.Get(unified + "status"))
	if state == "" && h.Get(unified+"reset") == "" || strings.HasPrefix(state, "allowed") {
		return time.Time{}, false
	}
	d := headerWait(http.StatusTooManyRequests, h, now)
	return now.Add(d), d > 0
}

// later reads what headers hold: a length of time, a number as in seconds, a date.
func later(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if t, ok := date(text); ok {
		return t.Sub(now)
	}
	if d := moment(text, now); d > 0 {
		return d
	}
	if wholeSpan().MatchString(text) { // 6m0s, 7.66s, 20ms, 1d2h
		return spanOf(text)
	}
	return 0
}

// reset is the time in the header RateLimit: `"default";r=0;t=50`, or `limit=10, remaining=0, reset=50`.
var reset = lazily(`(?i)(?:^|[;,\s])(?:t|reset)=(\d{1,9})\b`)

func policy(values []string) (d time.Duration) {
	for _, v := range values {
		for _, m := range reset().FindAllStringSubmatch(v, -1) {
			d = max(d, units(m[1], time.Second))
		}
	}
	return d
}

package evidence

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// How long a server asks to wait, header by header. R-2
func TestWait(t *testing.T) {
	now := at(t, "2026-03-10T12:00:00Z")
	h := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		h    http.Header
		want string
	}{
		{h("Retry-After", "7"), "7s"}, {h("Retry-After", " 7 "), "7s"}, {h("Retry-After", "1.5"), "1.5s"}, {h("Retry-After", "0"), "0s"},
		{h("Retry-After", "3600"), "1h0m0s"}, {h("Retry-After", "86400"), "24h0m0s"}, {h("Retry-After", "99999999999999"), "0s"},
		{h("Retry-After", "99999999999999999999999999"), "0s"}, {h("Retry-After", "-5"), "0s"}, {h("Retry-After", "1e3"), "0s"},
		{h("Retry-After", "NaN"), "0s"}, {h("Retry-After", "Inf"), "0s"}, {h("Retry-After", "0x10"), "0s"}, {h("Retry-After", "5, 9"), "9s"},
		{h("Retry-After", "30s"), "30s"}, {h("Retry-After", "1m30s"), "1m30s"}, {h("Retry-After", "1500ms"), "1.5s"}, {h("Retry-After", "-30s"), "0s"}, {h("Retry-After", "9999h"), "9999h0m0s"},
		{h("Retry-After", "soon"), "0s"}, {h("Retry-After", "1d"), "24h0m0s"}, {h("Retry-After", "9999d"), "0s"},
		{h("Anthropic-Ratelimit-Unified-Reset", "99999999999", "X-Ratelimit-Reset-Requests", "9s"), "9s"},
		{h("Retry-After", "5", "Retry-After", "9"), "9s"}, {h("Retry-After", ""), "0s"}, {h("Retry-After", "0.01"), "500ms"}, {h("Retry-After", "1,5"), "5s"},
		{h("Retry-After", fmt.Sprint(now.Add(time.Minute).Unix())), "1m0s"},
		{h("Retry-After", in(40*time.Second)), "40s"}, {h("Retry-After", in(-40*time.Second)), "0s"},
		{h("Retry-After", now.Add(40*time.Second).Format(time.RFC850)), "40s"}, {h("Retry-After", now.Add(40*time.Second).Format(time.ANSIC)), "40s"},
		{h("Retry-After", now.Add(40*time.Second).Format(time.RFC1123Z)), "40s"}, {h("Retry-After", "2026-03-10T12:00:40Z"), "40s"},
		{h("Retry-After", "Fri, 99 Foo 2026 99:99:99 GMT"), "0s"}, {h("Retry-After", "Wed, 10 Mar 2100 12:00:00 GMT"), "0s"},
		// the server's clock is two minutes ahead; far away clocks are not believed
		{h("Retry-After", in(150*time.Second), "Date", in(120*time.Second)), "30s"},
		{h("Retry-After", in(30*time.Second), "Date", in(100*24*time.Hour)), "30s"},
		{h("Retry-After-Ms", "1400.5", "Retry-After", "30"), "1.4005s"}, {h("Retry-After-Ms", "soon", "Retry-After", "3"), "3s"},
		{h("Retry-After-Ms", "-1", "Retry-After", "3"), "3s"}, {h("Retry-After-Ms", "250", "Retry-After", "1"), "500ms"},
		{h("Retry-After", "3", "X-Ratelimit-Reset", "60"), "3s"},
		// the limit that is used up counts, else the one that takes longest
		{h("X-Ratelimit-Reset-Tokens", "6m0s", "X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Remaining-Tokens", "5"), "1s"},
		{h("X-Ratelimit-Reset-Tokens", "6m0s", "X-Ratelimit-Reset-Requests", "1s"), "6m0s"},
		{h("X-Ratelimit-Reset-Requests", "1d2h"), "26h0m0s"}, {h("X-Ratelimit-Reset", "1773144060"), "1m0s"},
		{h("Anthropic-Ratelimit-Unified-5h-Reset", "1773144060", "Anthropic-Ratelimit-Unified-5h-Status", "rejected",
			"Anthropic-Ratelimit-Unified-7d-Reset", "1773500000", "Anthropic-Ratelimit-Unified-7d-Status", "allowed_warning"), "1m0s"},
		{h("Ratelimit", `"default";r=0;t=50`), "50s"}, {h("Ratelimit", "limit=10, remaining=0, reset=50"), "50s"}, {h("Ratelimit-Reset", "50"), "50s"},
		{h(), "0s"},
	}
	for _, tt := range tests {
		if got := headerWait(429, tt.h, now); got.String() != tt.want {
			t.Errorf("%v: %v, want %s", tt.h, got, tt.want)
		}
	}
	for _, status := range []int{408, 409, 500, 502, 503, 504, 529} { // not only on 429 and 503
		if got := headerWait(status, h("Retry-After", "7"), now); got != 7*time.Second {
			t.Errorf("%d: %v", status, got)
		}
	}
	if got := headerWait(500, h("X-Ratelimit-Reset", "60"), now); got != 0 {
		t.Errorf("a limit that is not used up: %v", got)
	}
}

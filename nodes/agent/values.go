package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"dagrun.dev/nodes"
)

// object is a JSON object with exact names. (Decoding into a struct would match names without
// regard to case, and one field of a wrong type would lose the whole object.)
type object map[string]json.RawMessage

// str returns a string field, "" when it is missing or something else.
func (o object) str(name string) string {
	var s string
	_ = json.Unmarshal(o[name], &s)
	return s
}

// num returns a number field; some write it as a text.
func (o object) num(name string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(string(bytes.Trim(o[name], `" `)), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// whole returns a whole number field, to the last digit; 3.0 and "3" are some.
func (o object) whole(name string) (n int64, ok bool) {
	if n, err := strconv.ParseInt(string(bytes.Trim(o[name], `" `)), 10, 64); err == nil {
		return n, true
	}
	v, ok := o.num(name)
	if !ok || math.Abs(v) > mostCount {
		return 0, false
	}
	return int64(v), v == math.Trunc(v)
}

// countable reports whether the fields of these names that are there are counts: no negative number
// and nothing else than a whole number.
func (o object) countable(names ...string) bool {
	for _, name := range names {
		if n, ok := o.whole(name); o.has(name) && (!ok || n < 0 || n > mostCount) {
			return false
		}
	}
	return true
}

// usage takes the tokens of a reply, unless one of the numbers that they were read from is no count:
// then nothing of them is believed, and what the attempt cost has to be known otherwise.
func (r *reply) usage(sum nodes.Usage, countable bool) {
	r.Usage = sum
	switch {
	case !countable:
		r.Usage = nodes.Usage{}
		r.Warnings = append(r.Warnings, "the usage reported holds what is no count of tokens; it counts as unknown")
	case max(sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite) > mostLikely:
		r.Warnings = append(r.Warnings, fmt.Sprintf("the usage reported is more than any model reads or writes: %d tokens in, %d out", sum.Input+sum.CacheRead+sum.CacheWrite, sum.Output))
	}
}

const (
	mostCount  = 1e16 // the largest count that is believed
	mostLikely = 1e10 // the largest that is believed without a word
)

// count returns a whole number field, 0 when it is missing or no count.
func (o object) count(name string) int64 {
	n, _ := o.whole(name)
	if n < 0 || n > mostCount {
		return 0
	}
	return n
}

// status returns a status of HTTP, which some write as a text; 0 when it is missing or something else.
func (o object) status(name string) int {
	raw := bytes.Trim(o[name], `" `)
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 100 || n > 599 {
		return 0
	}
	return n
}

// sane reports whether a number of dollars can be what an attempt cost.
func sane(usd float64) bool { return usd >= 0 && usd <= 1e6 }

// yes returns a truth value; the text "true" and the number 1 count.
func (o object) yes(name string) bool {
	raw := string(bytes.ToLower(bytes.Trim(o[name], `" `)))
	return raw == "true" || raw == "1"
}

// has reports whether a field is there and not null.
func (o object) has(name string) bool {
	raw, ok := o[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

func (o object) object(name string) object {
	var v object
	_ = json.Unmarshal(o[name], &v)
	return v
}

func (o object) list(name string) []json.RawMessage {
	var v []json.RawMessage
	_ = json.Unmarshal(o[name], &v)
	return v
}

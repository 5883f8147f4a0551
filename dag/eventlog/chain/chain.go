// Package chain turns the events of one run into the lines of its log, each with the hash of the one
// before it, and checks lines that were read.
//
// It touches no file: who keeps the lines, in one file or in pieces elsewhere, and what is done about
// an end that is missing, is not its matter.
package chain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/dag/machine"
)

// An Envelope is a line of the log taken apart. A line is an envelope's canonical JSON (RFC 8785) and a line feed:
//
//	{"event_hash":H,"event_id":I,["parent_span_id":P,]"payload":{...},"prev_hash":V,
//	 "run_id":R,"span_id":S,"trace_id":T,"ts":D,"type":Y}
//
// H is the lower-case hex sha256 of the bytes I ‖ D ‖ Y ‖ payload ‖ V: the four strings without
// their quotes and the payload's canonical JSON exactly as it stands in the line. V is the H of the
// line before, 64 zeros in the first. I is "e" and the line's number in ten digits, D has 24
// characters, so that no two events share these bytes. What H does not cover is derived: R is what
// the first event's payload says, P, S and T follow from the payload (see spans.go). A reader
// composes the line anew from D, Y and payload and compares bytes.
//
//	sed -n 7p events.ndjson | jq -j '.event_id+.ts+.type, (.payload|tojson), .prev_hash' | sha256sum
//
// gives the seventh hash wherever jq prints the payload's numbers as they stand.
type Envelope struct {
	EventID      string
	RunID        string
	TS           string // RFC 3339, UTC, milliseconds
	Type         machine.Type
	Payload      []byte // canonical JSON; valid until the callback returns
	TraceID      string
	SpanID       string
	ParentSpanID string
	PrevHash     string
	EventHash    string
	Line         []byte // as it is on disk, without its line feed; valid until the callback returns
}

const (
	timeLayout = "2006-01-02T15:04:05.000Z"
	firstPrev  = "0000000000000000000000000000000000000000000000000000000000000000"
)

// MaxLine bounds a line, in bytes. A longer event is refused when written and when read.
const MaxLine = 64 << 20

// EventID returns the id of the event with a sequence number.
func EventID(seq int64) string {
	const zeros = "e0000000000"
	digits := strconv.FormatInt(seq, 10)
	return zeros[:max(1, len(zeros)-len(digits))] + digits
}

// A Head names a log up to and including one event. The zero Head is the empty log.
type Head struct {
	Seq    int64  `json:"seq"`    // of the last event; it equals the line number
	Hash   string `json:"hash"`   // its event_hash; empty for the empty log
	Offset int64  `json:"offset"` // bytes up to the end of its line
}

// Newer says that a newer version of the program wrote an event.
type Newer struct {
	File string
	Line int64
	What string
}

func (n *Newer) Error() string {
	return fmt.Sprintf("%s line %d: %s; use the dagrun that wrote it, or start over (dagrun apply --fresh)",
		n.File, n.Line, n.What)
}

// A Chain composes and checks the lines of one log in order. It belongs to one goroutine.
type Chain struct {
	ids    spans
	seq    int64  // of the last line
	prev   string // its hash in hex
	offset int64  // of its end
	hash   hash.Hash
	sum    []byte // what a line's hash begins with, then the hash
	sec    int64  // Unix time of ts
	ms     int    // and its milliseconds
	ts     string // of the last line: many lines in a row have nearly the same
	buf    []byte // of Next
}

// New returns the chain of a run that goes on behind a head.
func New(runID string, at Head) *Chain {
	c := &Chain{ids: newSpans(runID), seq: at.Seq, offset: at.Offset, hash: sha256.New(), prev: firstPrev}
	if at.Seq > 0 {
		c.prev = at.Hash
	}
	return c
}

// Head returns the head after the last line.
func (c *Chain) Head() Head {
	if c.seq == 0 {
		return Head{}
	}
	return Head{c.seq, c.prev, c.offset}
}

// RunID returns the run whose chain it is.
func (c *Chain) RunID() string { return c.ids.run }

// Append appends the lines of events to dst and sets their Seq. On an error the chain stands where it
// stood.
func (c *Chain) Append(dst []byte, events []machine.Event) ([]byte, error) {
	before := c.Head()
	for i := range events {
		var err error
		if dst, err = c.add(dst, &events[i]); err != nil {
			c.back(before)
			return nil, err
		}
		events[i].Seq = c.seq
	}
	return dst, nil
}

// back puts the chain behind an earlier head.
func (c *Chain) back(to Head) {
	c.seq, c.offset, c.prev = to.Seq, to.Offset, to.Hash
	if to.Seq == 0 {
		c.prev = firstPrev
	}
}

// stamp is an instant as lines have it. The layout is gone through once for many lines in a row.
func (c *Chain) stamp(at time.Time) string {
	switch sec, ms := at.Unix(), at.Nanosecond()/1e6; {
	case c.ts == "" || sec != c.sec:
		c.sec, c.ms, c.ts = sec, ms, at.UTC().Format(timeLayout)
	case ms != c.ms:
		c.ms, c.ts = ms, c.ts[:20]+strconv.Itoa(1000 + ms)[1:]+"Z"
	}
	return c.ts
}

// add appends the line of the next event to dst. On an error the chain stands where it stood.
func (c *Chain) add(dst []byte, e *machine.Event) ([]byte, error) {
	start := len(dst)
	id := EventID(c.seq + 1)
	ts := c.stamp(e.Time)
	span, parent := c.ids.of(e.Body)

	dst = append(dst, `{"event_hash":"`...)
	hashAt := len(dst)
	dst = append(dst, firstPrev...)
	dst = append(dst, `","event_id":"`...)
	dst = append(dst, id...)
	if parent != "" {
		dst = append(dst, `","parent_span_id":"`...)
		dst = append(dst, parent...)
	}
	dst = append(dst, `","payload":`...)
	payloadAt := len(dst)
	dst, err := machine.AppendPayload(dst, e.Body)
	if err != nil {
		return dst[:start], fmt.Errorf("eventlog: payload of %s: %w", e.Type, err)
	}
	c.hash.Reset()
	c.sum = append(append(append(c.sum[:0], id...), ts...), e.Type...)
	c.hash.Write(c.sum)
	c.hash.Write(dst[payloadAt:])
	dst = append(dst, `,"prev_hash":"`...)
	prevAt := len(dst)
	dst = append(dst, c.prev...)
	c.hash.Write(dst[prevAt:])
	dst = append(dst, `","run_id":"`...)
	dst = append(dst, c.ids.run...)
	dst = append(dst, `","span_id":"`...)
	dst = append(dst, span...)
	dst = append(dst, `","trace_id":"`...)
	dst = append(dst, c.ids.trace...)
	dst = append(dst, `","ts":"`...)
	dst = append(dst, ts...)
	dst = append(dst, `","type":"`...)
	dst = append(dst, e.Type...)
	dst = append(dst, "\"}\n"...)
	if n := len(dst) - start; n > MaxLine {
		return dst[:start], fmt.Errorf("eventlog: %s of %d bytes is longer than a line may be (%d)", e.Type, n, MaxLine)
	}
	c.sum = c.hash.Sum(c.sum[:0])
	hex.Encode(dst[hashAt:], c.sum)
	c.prev = string(dst[hashAt : hashAt+64])
	c.seq++
	c.offset += int64(len(dst) - start)
	return dst, nil
}

// Next reads the line that must follow: it composes the line from the time, type and payload found
// in it and compares. The error says what is wrong, in words for the user; *Newer for an event that
// a newer version wrote. On an error the chain stands where it stood.
func (c *Chain) Next(line []byte) (machine.Event, Envelope, error) {
	env, err := Split(line)
	if err != nil {
		return machine.Event{}, env, err
	}
	before := c.Head()
	e, err := c.compose(line, env)
	if err != nil {
		c.back(before)
		return machine.Event{}, env, c.explain(env, err)
	}
	e.Seq = c.seq
	return e, env, nil
}

var errDiffers = errors.New("is not the canonical form of its content")

func (c *Chain) compose(line []byte, env Envelope) (machine.Event, error) {
	at, err := time.Parse(timeLayout, env.TS)
	if err != nil {
		return machine.Event{}, errors.New("ts is not a UTC time in milliseconds")
	}
	body, err := machine.DecodePayload(env.Type, env.Payload)
	if err != nil {
		return machine.Event{}, &undecoded{err}
	}
	e := machine.New(at, body)
	e.Type = env.Type
	if c.buf, err = c.add(c.buf[:0], &e); err != nil {
		return e, err
	}
	if !bytes.Equal(c.buf, line) {
		return e, errDiffers
	}
	return e, nil
}

type undecoded struct{ err error }

func (u *undecoded) Error() string { return u.err.Error() }

// explain names the first field that is wrong, so that a user can tell a foreign line from a
// changed one. found is what was noticed before.
func (c *Chain) explain(env Envelope, found error) error {
	switch {
	case env.RunID != c.ids.run:
		return fmt.Errorf("belongs to run %.80q, the log to %q", env.RunID, c.ids.run)
	case env.EventID != EventID(c.seq+1):
		return fmt.Errorf("has event_id %.20q, wanted %q: a line is missing, doubled or out of order",
			env.EventID, EventID(c.seq+1))
	case env.PrevHash != c.prev:
		return errors.New("prev_hash is not the event_hash of the line before: a line is missing or changed")
	case env.EventHash != env.Digest():
		return errors.New("event_hash does not match: the event was changed")
	}
	var u *undecoded
	if errors.As(found, &u) {
		return &Newer{What: fmt.Sprintf("event %s (%s) is not known to this version: %v", env.EventID, env.Type, u.err)}
	}
	return found
}

// Digest computes the hash that the envelope should have.
func (e *Envelope) Digest() string {
	h := sha256.New()
	h.Write([]byte(e.EventID + e.TS + string(e.Type)))
	h.Write(e.Payload)
	h.Write([]byte(e.PrevHash))
	return hex.EncodeToString(h.Sum(nil))
}

// Whole reports whether a line is an event of a run in itself, wherever it stands.
func Whole(line []byte, runID string) bool {
	env, err := Split(line)
	return err == nil && env.RunID == runID && env.EventHash == env.Digest()
}

// Split takes a line apart. It relies on the one order that canonical JSON allows; values are
// checked by whoever composes the line anew.
func Split(line []byte) (Envelope, error) {
	var e Envelope
	s, ended := bytes.CutSuffix(line, []byte("\n"))
	switch {
	case !ended:
		return e, errors.New("is cut off: no line feed at its end")
	case bytes.HasSuffix(s, []byte("\r")):
		return e, errors.New("ends in CR LF: the file was rewritten by an editor or a transfer")
	}
	e.Line = s
	c := cutter{rest: s, ok: true}
	e.EventHash = c.text(`{"event_hash":"`)
	e.EventID = c.text(`,"event_id":"`)
	if bytes.HasPrefix(c.rest, []byte(`,"parent_span_id":"`)) {
		e.ParentSpanID = c.text(`,"parent_span_id":"`)
	}
	c.skip(`,"payload":`)
	if i := bytes.LastIndex(c.rest, []byte(`,"prev_hash":"`)); i >= 0 && c.ok {
		e.Payload, c.rest = c.rest[:i], c.rest[i:]
	}
	e.PrevHash = c.text(`,"prev_hash":"`)
	e.RunID = c.text(`,"run_id":"`)
	e.SpanID = c.text(`,"span_id":"`)
	e.TraceID = c.text(`,"trace_id":"`)
	e.TS = c.text(`,"ts":"`)
	e.Type = machine.Type(c.text(`,"type":"`))
	if !c.ok || string(c.rest) != "}" {
		return e, errors.New("is not an event in canonical form")
	}
	return e, nil
}

// A cutter takes known pieces off the front of a line until one is missing.
type cutter struct {
	rest []byte
	ok   bool
}

func (c *cutter) skip(prefix string) {
	if c.ok {
		c.rest, c.ok = bytes.CutPrefix(c.rest, []byte(prefix))
	}
}

// text takes a prefix and the string up to the next quote.
func (c *cutter) text(prefix string) string {
	c.skip(prefix)
	i := bytes.IndexByte(c.rest, '"')
	if !c.ok || i < 0 {
		c.ok = false
		return ""
	}
	s := string(c.rest[:i])
	c.rest = c.rest[i+1:]
	return s
}

// ValidRunID reports whether a run id can stand in the log: 1 to 64 of A-Z a-z 0-9 . _ -
func ValidRunID(id string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return id != "" && len(id) <= 64 && strings.Trim(id, allowed) == ""
}

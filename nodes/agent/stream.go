package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/httpc"
	"dagrun.dev/nodes/internal/jsonscan"
	"dagrun.dev/nodes/prompt"
)

// A streamReader reads one answer of status 200, as it comes or from the spool.
type streamReader struct {
	answer  *httpc.Answer
	from    *bufio.Reader
	failure evidence.Case
	t       *transcript.Transcript
	r       *reply
	events  int
	odd     jsonscan.Oddities // of the objects that came
	// skipped counts lines of data that are no part of the answer.
	skipped int
	// refused says that an error object came which means that the service did nothing.
	refused bool
}

// readAnswer reads an answer of status 200 to its end and judges it. The text so far is kept whatever happens.
func readAnswer(f *transcript.Format, q *question, answer *httpc.Answer, from io.Reader, r *reply) {
	failure := q.evidence(f.Table)
	s := &streamReader{
		answer: answer, from: bufio.NewReader(from), failure: failure, r: r,
		t: transcript.New(f, failure, q.set.MaxOutputTokens),
	}
	if r.Failure = s.read(); r.Failure != nil {
		r.Finish, r.Refused = "error", r.Refused || s.refused
		r.Price()
	}
	r.Ended, _ = s.t.Ended()
}

func (s *streamReader) read() *nodes.Error {
	start, err := s.begin()
	if err != nil && len(start) == 0 && !errors.Is(err, io.EOF) {
		return nodes.Failure("transient", err)
	}
	switch kind := s.answer.Type(); {
	case len(start) == 0:
		return nodes.Fail("protocol", "the answer of status 200 is empty")
	case kind == "text/html" || start[0] == '<':
		return s.noAnswer(start)
	case start[0] == '{' || start[0] == '[':
		return s.document()
	case kind == "text/event-stream" || eventStart.Match(start):
		return s.stream()
	default:
		return s.noAnswer(start)
	}
}

// eventStart is how a stream of events begins.
var eventStart = regexp.MustCompile(`^(?:data|event|id|retry)?:`)

// begin returns the first bytes behind blanks, which some servers send to keep a connection open.
func (s *streamReader) begin() ([]byte, error) {
	for {
		c, err := s.from.ReadByte()
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte([]byte(" \t\r\n\xef\xbb\xbf"), c) < 0 {
			break
		}
	}
	if err := s.from.UnreadByte(); err != nil {
		return nil, err
	}
	return s.from.Peek(512) // an error comes again when this has been read
}

func (s *streamReader) noAnswer(first []byte) *nodes.Error {
	return nodes.Fail("protocol", s.answer.Describe(first)+", where the API's answer should be")
}

// document reads an answer in one piece.
func (s *streamReader) document() *nodes.Error {
	raw, err := io.ReadAll(s.from)
	if err != nil && !json.Valid(raw) {
		return nodes.Failure("transient", err)
	}
	if err != nil {
		s.r.Warn("the connection ended badly behind the answer: %v", err)
	}
	var o jsonscan.Object
	if err := json.Unmarshal(raw, &o); err != nil && raw[0] != '[' {
		msg := fmt.Sprintf("the answer is no JSON (%d bytes)", len(raw))
		return &nodes.Error{Category: "transient", Message: msg, Err: err}
	}
	s.odd.Look(raw)
	object, isError := evidence.ReadError(raw)
	var failure *nodes.Error
	switch whole := s.t.Whole(o); {
	case whole:
		failure = s.fill()
	case !isError:
		return s.noAnswer(raw)
	}
	if isError && failure == nil {
		failure = s.fails(object, raw)
	}
	return failure
}

// mostEvent is the longest event of a stream.
const mostEvent = 16 << 20

func (s *streamReader) stream() *nodes.Error {
	failure := s.readEvents(httpc.NewEvents(s.from, mostEvent))
	if ended, _ := s.t.Ended(); ended {
		own := s.fill()
		if failure != nil {
			s.r.Warn("the stream ended badly behind the answer: %s", failure.Message)
		}
		return own
	}
	s.t.FillPartial(s.r)
	s.remarks()
	_, closed := s.t.Ended()
	switch {
	case failure != nil:
		return failure
	case s.events == 0:
		return nodes.Fail("protocol", "the stream of status 200 holds no event")
	case closed:
		return nodes.Failf("transient",
			"the stream was closed without a reason to stop, after %d bytes of text", len(s.r.Text))
	}
	return nodes.Failf("transient", "the stream ended in the middle, after %d bytes of text", len(s.r.Text))
}

// readEvents hands the events to the transcript until the end, an error or a line that cannot be read. The end
// is what the provider says is one: some connections stay open behind it.
func (s *streamReader) readEvents(events *httpc.Events) *nodes.Error {
	for {
		if _, closed := s.t.Ended(); closed {
			return nil
		}
		ev, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return nodes.Failure("transient", err)
		}
		switch data := bytes.TrimSpace(ev.Data); {
		case len(data) == 0:
		case bytes.Equal(data, []byte("[DONE]")):
			s.t.Close()
		default:
			if failure := s.take(ev, data); failure != nil {
				return failure
			}
		}
	}
}

// take hands one event to the transcript. What is JSON but no object belongs to no API: a sign of life.
func (s *streamReader) take(ev httpc.Event, data []byte) *nodes.Error {
	var o jsonscan.Object
	err := json.Unmarshal(data, &o)
	// An event that holds the object of a Responses stream which failed is judged with that.
	named := ev.Name == "error" || o.Str("type") == "error" || o.Str("object") == "error" || o.Has("error")
	strange := o.Str("type") == "" && !o.Has("choices") // one only by its status: others tell of a queue
	if (named || strange) && !o.Has("response") {
		if object, ok := evidence.ReadError(data); ok && (named || object.Status >= http.StatusBadRequest) {
			return s.fails(object, data)
		}
	}
	switch {
	case ev.Name == "error" && o == nil:
		said := s.failure
		said.Text = string(data)
		return said.Error()
	case err != nil && json.Valid(data), err == nil && o == nil:
		return nil
	case err != nil && ev.Open:
		return nil // cut off, not broken: the end shows it
	case err != nil && !bytes.ContainsAny(data, `{}"`):
		s.skipped++ // a sign of life that some gateways send as data: ": keepalive", "[HEARTBEAT]"
		return nil
	case err != nil:
		msg := "a line of the stream is broken, text may be missing: " + printable.Clip(string(data), 100)
		return &nodes.Error{Category: "transient", Message: msg, Err: err}
	}
	s.events++
	s.odd.Look(data)
	if o.Str("type") == "" && ev.Name != "" {
		o["type"], _ = json.Marshal(ev.Name)
	}
	s.t.Read(o)
	return nil
}

// fails judges an error object that came where an answer should be.
func (s *streamReader) fails(object evidence.ErrorObject, raw []byte) (e *nodes.Error) {
	e, s.refused = s.failure.Of(object, raw).Judge()
	return e
}

// fill completes the reply of a provider that said how it ended.
func (s *streamReader) fill() *nodes.Error {
	s.t.Fill(s.r)
	if _, closed := s.t.Ended(); s.r.Failure == nil && !closed {
		s.r.Warn("the stream ended without its closing mark; the answer is whole")
	}
	s.remarks()
	return s.r.Failure
}

// remarks warns of what is odd about an answer, whole or not.
func (s *streamReader) remarks() {
	s.r.Warnings = append(s.r.Warnings, s.odd.Warnings(s.r.Text)...)
	if s.skipped > 0 {
		s.r.Warn("the stream held %d lines of data that are no JSON; they were taken for signs of life", s.skipped)
	}
	if s.r.Usage == (nodes.Usage{}) {
		about := prompt.EstimateTokens(int64(len([]rune(s.r.Text))))
		s.r.Warn("the provider reported no usage, so the cost is not known (the answer has about %d tokens)", about)
	}
}

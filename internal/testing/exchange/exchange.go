// Package exchange serves prepared answers from a loopback server, byte by byte as the files
// say, cut and broken where they want it. It is for tests only.
package exchange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A File is an exchange file: the answers to give, in order.
type File struct {
	Responses []Response `json:"responses"`
}

// A Response is one answer.
type Response struct {
	Status   int               `json:"status"`
	Headers  map[string]string `json:"headers"`
	Body     json.RawMessage   `json:"body"` // a JSON value, or a string that is sent as it is
	BodyFile string            `json:"body_file"`
	RawBody  string            `json:"raw_body"`
	Chunks   []Chunk           `json:"chunks"`
	Drip     *Drip             `json:"drip"`
	AfterMS  int               `json:"after_ms"` // before anything is sent
	// End is how the connection ends: "" in order; close (whatever content-length says), reset,
	// stall (until the server is closed), drop-after-request (no answer at all).
	End string `json:"end"`
}

// A Chunk is a piece of a body.
type Chunk struct {
	Data    string `json:"data"`
	AfterMS int    `json:"after_ms"`
}

// A Drip sends so many bytes every so many milliseconds.
type Drip struct {
	Bytes   int `json:"bytes"`
	EveryMS int `json:"every_ms"`
}

// A Request is what the server was sent.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
}

// A Server answers from a list; the last answer repeats.
type Server struct {
	URL string

	t    testing.TB
	dir  string
	done chan struct{} // closed with the test

	mu       sync.Mutex
	answers  []Response
	requests []Request
}

// Load reads an exchange file.
func Load(t testing.TB, path string) []Response {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f File
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f.Responses
}

// Serve starts a server that ends with the test. dir is where body files are.
func Serve(t testing.TB, dir string, answers ...Response) *Server {
	t.Helper()
	s := &Server{t: t, dir: dir, done: make(chan struct{}), answers: answers}
	server := httptest.NewServer(s)
	s.URL = server.URL
	t.Cleanup(func() {
		close(s.done)
		server.Close()
	})
	return s
}

// Nobody returns an address that refuses connections until the test ends: its port is taken, and nobody listens
// there. A port that was given back could be anybody's by the time it is called.
func Nobody(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	syscall.CloseOnExec(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

// Requests returns what was sent so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// ServeHTTP takes the connection over, because an answer may break every rule of HTTP.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	s.mu.Lock()
	r := s.answers[min(len(s.requests), len(s.answers)-1)]
	s.requests = append(s.requests, Request{req.Method, req.URL.RequestURI(), req.Header, body})
	s.mu.Unlock()
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close()
	s.pause(r.AfterMS)
	if r.End == "drop-after-request" {
		return
	}
	s.answer(conn, r)
	switch r.End {
	case "reset":
		_ = conn.(*net.TCPConn).SetLinger(0)
	case "stall":
		<-s.done
	}
}

func (s *Server) answer(conn net.Conn, r Response) {
	body, kind := s.body(r)
	h := http.Header{}
	for name, value := range r.Headers {
		h.Set(name, value)
	}
	if h.Get("Content-Type") == "" && kind != "" {
		h.Set("Content-Type", kind)
	}
	h.Set("Connection", "close")
	whole := r.End == "" && len(r.Chunks) == 0 && r.Drip == nil
	if whole && h.Get("Content-Length") == "" && r.Status != http.StatusNoContent {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", r.Status, http.StatusText(r.Status))
	_ = h.Write(&head)
	head.WriteString("\r\n")
	_, _ = conn.Write(head.Bytes())
	for _, c := range r.Chunks {
		s.pause(c.AfterMS)
		_, _ = io.WriteString(conn, c.Data)
	}
	drip := Drip{Bytes: max(1, len(body))}
	if r.Drip != nil {
		drip = *r.Drip
	}
	for piece := range slices.Chunk(body, drip.Bytes) {
		if _, err := conn.Write(piece); err != nil {
			return
		}
		s.pause(drip.EveryMS)
	}
}

func (s *Server) body(r Response) (body []byte, kind string) {
	switch {
	case r.BodyFile != "":
		b, err := os.ReadFile(filepath.Join(s.dir, r.BodyFile))
		if err != nil {
			s.t.Error(err)
		}
		return b, "text/event-stream"
	case r.RawBody != "":
		return []byte(r.RawBody), ""
	case len(r.Body) == 0:
		return nil, ""
	}
	var text string
	if json.Unmarshal(r.Body, &text) == nil {
		return []byte(text), ""
	}
	return r.Body, "application/json"
}

// pause waits, or until the server is closed. Files ask for half a second where only the order counts.
func (s *Server) pause(ms int) {
	if ms == 0 {
		return
	}
	timer := time.NewTimer(time.Duration(min(ms, 50)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
	}
}

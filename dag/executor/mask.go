package executor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"sort"
	"strings"
	"sync"
)

// masked is what stands in for a secret in everything that is kept.
const masked = "[secret]"

// shortest is the length from which a secret's value is masked: shorter ones would make
// nonsense of ordinary text.
const shortest = 4

// A mask knows the secrets that attempts were given and takes them out of what is kept: events,
// files, log lines. It may be used from any goroutine. The zero mask masks nothing and costs
// nothing.
type mask struct {
	mu       sync.RWMutex
	known    map[string]bool
	values   [][]byte // longest first, so that no part of a longer one is left
	replacer *strings.Replacer
}

// add makes a secret known, also as it looks inside JSON, URLs and base64.
func (m *mask) add(secret string) {
	if len(secret) < shortest {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[secret] {
		return
	}
	if m.known == nil {
		m.known = map[string]bool{}
	}
	quoted, _ := json.Marshal(secret) // a string cannot fail
	for _, form := range []string{
		secret,
		strings.Trim(string(quoted), `"`),
		url.QueryEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)),
	} {
		if !m.known[form] {
			m.known[form] = true
			m.values = append(m.values, []byte(form))
		}
	}
	sort.SliceStable(m.values, func(i, j int) bool { return len(m.values[i]) > len(m.values[j]) })
	pairs := make([]string, 0, 2*len(m.values))
	for _, v := range m.values {
		pairs = append(pairs, string(v), masked)
	}
	m.replacer = strings.NewReplacer(pairs...)
}

// text returns s without secrets.
func (m *mask) text(s string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.replacer == nil {
		return s
	}
	return m.replacer.Replace(s)
}

// texts returns the values of m without secrets.
func (m *mask) texts(in map[string]string) map[string]string {
	if m.longest() == 0 || len(in) == 0 {
		return in
	}
	out := make(map[string]string, len(in))
	for name, v := range in {
		out[name] = m.text(v)
	}
	return out
}

// longest returns the length of the longest known form, 0 when there is none.
func (m *mask) longest() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.values) == 0 {
		return 0
	}
	return len(m.values[0])
}

// writer returns w behind the mask. A secret that is split between two writes is found too.
func (m *mask) writer(w io.WriteCloser) io.WriteCloser { return &maskWriter{m: m, w: w} }

type maskWriter struct {
	m    *mask
	w    io.WriteCloser
	held []byte // the end of what was written, which may be the start of a secret
}

func (w *maskWriter) Write(p []byte) (int, error) {
	n := w.m.longest()
	if n == 0 && len(w.held) == 0 {
		return w.w.Write(p)
	}
	text := []byte(w.m.text(string(append(w.held, p...))))
	keep := min(len(text), max(0, n-1))
	w.held = append([]byte(nil), text[len(text)-keep:]...)
	if _, err := w.w.Write(text[:len(text)-keep]); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *maskWriter) Close() error {
	_, err := w.w.Write([]byte(w.m.text(string(w.held))))
	w.held = nil
	if cerr := w.w.Close(); err == nil {
		err = cerr
	}
	return err
}

// file takes secrets out of a staged file in place; a file without any is left as it is.
func (m *mask) file(path string) error {
	if m.longest() == 0 {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	clean := m.text(string(data))
	if bytes.Equal(data, []byte(clean)) {
		return nil
	}
	return os.WriteFile(path, []byte(clean), 0o600)
}

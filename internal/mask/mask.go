// Package mask takes secrets out of what is kept and shown.
//
// A secret is found as it is, and as it looks in JSON, addresses, HTML and base64, each of its lines by itself.
// Ciphers, digests and compressed data are not looked into.
package mask

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// shortest is the length from which a secret is masked: shorter ones would make nonsense of ordinary text.
	shortest = 4
	// shortestLine is the length from which a line of a secret of several lines is masked by itself.
	shortestLine = 8
)

// A Mask knows the secrets that attempts were given and takes them out of text. It may be used from any goroutine. The
// zero Mask masks nothing and costs nothing.
type Mask struct {
	mu     sync.Mutex // of those who add
	known  map[string]bool
	finder atomic.Pointer[finder] // of all that is known; nil = nothing
}

// Add makes a secret known.
func (m *Mask) Add(secret string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	added := false
	for _, part := range parts(secret) {
		if !m.known[part] {
			if m.known == nil {
				m.known = map[string]bool{}
			}
			m.known[part] = true
			added = true
		}
	}
	if added {
		m.finder.Store(newFinder(m.known))
	}
}

// parts are what of a secret is masked: all, and each line. Line ends may be written out as \n, as variables have them.
func parts(secret string) (list []string) {
	for _, whole := range []string{secret, strings.TrimSpace(secret)} {
		if len(whole) >= shortest {
			list = append(list, whole)
		}
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(secret), `\n`, "\n"), "\n")
	for _, line := range lines {
		if line = strings.TrimSpace(line); len(lines) > 1 && len(line) >= shortestLine {
			list = append(list, line)
		}
	}
	return list
}

// Text returns s without secrets.
func (m *Mask) Text(s string) string { return m.text(s, false) }

// Message is Text for what others may have cut to size: what is left of a secret at its ends, or at dots that stand for
// what was left out, is taken out too.
func (m *Mask) Message(s string) string { return m.text(s, true) }

func (m *Mask) text(s string, cut bool) string {
	f := m.finder.Load()
	if f == nil || len(s) < shortest {
		return s
	}
	c := cleaner{finder: f, final: true, cut: cut}
	if c.clean([]byte(s)); !c.found {
		return s
	}
	return string(c.out)
}

// Texts returns the values of a map without secrets.
func (m *Mask) Texts(in map[string]string) map[string]string {
	if m.finder.Load() == nil || len(in) == 0 {
		return in
	}
	out := make(map[string]string, len(in))
	for name, v := range in {
		out[name] = m.Text(v)
	}
	return out
}

// JSON returns a JSON value without secrets in its strings and names. A long number that holds one becomes a string.
func (m *Mask) JSON(raw json.RawMessage) json.RawMessage {
	if m.finder.Load() == nil {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage(m.Text(string(raw)))
	}
	v, found := m.value(v)
	if !found {
		return raw
	}
	clean, _ := json.Marshal(v) // it was JSON before
	return clean
}

func (m *Mask) value(v any) (clean any, found bool) {
	switch v := v.(type) {
	case string:
		s := m.Text(v)
		return s, s != v
	case json.Number:
		if s := string(v); len(s) >= shortestLine && m.Text(s) != s {
			return Shown, true
		}
	case []any:
		for i := range v {
			x, hit := m.value(v[i])
			v[i], found = x, found || hit
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, x := range v {
			x, hit := m.value(x)
			shown := m.Text(name)
			out[shown], found = x, found || hit || shown != name
		}
		return out, found
	}
	return v, found
}

// Writer returns w behind the mask. A secret that is split between writes is found; what may be the beginning of one is
// held back until more comes or the writer is closed.
func (m *Mask) Writer(w io.WriteCloser) io.WriteCloser { return &writer{mask: m, w: w} }

type writer struct {
	mask  *Mask
	w     io.WriteCloser
	held  []byte
	found bool // there was a secret
}

func (w *writer) Write(p []byte) (int, error) { return len(p), w.put(p, false) }

func (w *writer) put(p []byte, final bool) error {
	f := w.mask.finder.Load()
	if f == nil {
		_, err := w.w.Write(p)
		return err
	}
	if len(w.held) > 0 {
		p = append(w.held, p...)
	}
	c := cleaner{finder: f, final: final}
	hold := c.clean(p)
	out := p[:hold]
	if c.found {
		w.found, out = true, c.out
	}
	_, err := w.w.Write(out)
	w.held = append([]byte(nil), p[hold:]...)
	return err
}

func (w *writer) Close() error {
	var err error
	if len(w.held) > 0 {
		err = w.put(nil, true)
	}
	return errors.Join(err, w.w.Close())
}

// File takes secrets out of a regular file; one without any is left as it is.
func (m *Mask) File(path string) error {
	if m.finder.Load() == nil {
		return nil
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	look := &writer{mask: m, w: nowhere{}}
	if err := look.copy(from); err != nil || !look.found {
		return err
	}
	st, err := from.Stat()
	if err != nil {
		return err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := os.CreateTemp(filepath.Dir(path), ".masked-*")
	if err != nil {
		return err
	}
	err = errors.Join(to.Chmod(st.Mode().Perm()), (&writer{mask: m, w: to}).copy(from))
	if err == nil {
		err = os.Rename(to.Name(), path)
	}
	if err != nil {
		_ = os.Remove(to.Name())
	}
	return err
}

func (w *writer) copy(from io.Reader) error {
	_, err := io.Copy(w, from)
	return errors.Join(err, w.Close())
}

// nowhere takes everything.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }

package scan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dagrun.dev/internal/regular"
	values "dagrun.dev/internal/tree"
)

// A memory is what an earlier scan of the same files has found out. It is one file outside of any run, and nothing is
// lost with it: what is not in it is read anew.
type memory struct {
	file    string // empty: there is no place for it
	about   string // digest of the expressions: values of others are not taken
	entries map[string]entry
	fresh   bool // there is something new
}

// An entry is what is known of a file.
type entry struct {
	stamp  stamp
	digest string
	// Of the file of an item: what is in it, as JSON; what is wrong with it; a digest of the stamps of all files that
	// the values of vars depend on, and those values. Empty are those that were not computed.
	meta, problem, basis, values string
}

// young is how long after its last change a file is not believed to be the same by its stamp: the clock of a file
// system may stand still as long.
var young = 2 * time.Second // tests change it

// settled reports whether a file that had this stamp at an instant cannot change without getting another.
func (s stamp) settled(at time.Time) bool {
	return s.changed != 0 && s.changed < at.Add(-young).UnixNano()
}

const (
	memoryFormat = "dagrun scan 1\n"
	mostMemory   = 4 << 30 // bytes, far above what a million items need
)

// remember reads what is known of the files that settings name below a folder. What cannot be read is not known.
func remember(cache, dir string, s *settings, about string) *memory {
	m := &memory{about: about}
	if cache == "" {
		return m
	}
	what, _ := json.Marshal([]any{dir, s.Items, s.Content, s.Parse, s.MaxKB, s.Skip, s.Nested}) // texts: no error
	m.file = filepath.Join(cache, "scan", sumOf(what)[:32])
	if data, err := regular.Read(m.file, mostMemory); err == nil {
		m.entries, _ = decode(data, about)
	}
	return m
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// keep writes what is known now in the place of what was. A failure costs time in the next scan and nothing else.
func (m *memory) keep(now map[string]entry) {
	if m.file == "" {
		return
	}
	dir := filepath.Dir(m.file)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(dir, ".tmp-")
	if err != nil {
		return
	}
	_, err = f.Write(encode(now, m.about))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), m.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// encode writes entries with a digest over all of it in the end, so that whatever happens to the file is noticed.
func encode(entries map[string]entry, about string) []byte {
	b := append(make([]byte, 0, 200*len(entries)+100), memoryFormat...)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(about)
	for _, path := range slices.Sorted(maps.Keys(entries)) {
		x := entries[path]
		text(path)
		for _, n := range []int64{x.stamp.size, x.stamp.modified, x.stamp.changed, int64(x.stamp.inode)} {
			b = binary.AppendVarint(b, n)
		}
		for _, s := range []string{x.digest, x.meta, x.problem, x.basis, x.values} {
			text(s)
		}
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

var errDamaged = errors.New("not what was written")

// decode reads what encode wrote. Values that other expressions gave are left out.
func decode(data []byte, about string) (map[string]entry, error) {
	end := len(data) - sha256.Size
	if end < len(memoryFormat) || string(data[:len(memoryFormat)]) != memoryFormat ||
		sha256.Sum256(data[:end]) != [sha256.Size]byte(data[end:]) {
		return nil, errDamaged
	}
	r := reader{rest: string(data[len(memoryFormat):end])}
	same := r.text() == about
	entries := make(map[string]entry, end/300)
	for r.rest != "" && !r.bad {
		path := r.text()
		x := entry{stamp: stamp{r.int(), r.int(), r.int(), uint64(r.int())}}
		for _, to := range []*string{&x.digest, &x.meta, &x.problem, &x.basis, &x.values} {
			*to = r.text()
		}
		if !same {
			x.basis, x.values = "", ""
		}
		entries[path] = x
	}
	if r.bad {
		return nil, errDamaged
	}
	return entries, nil
}

// A reader takes numbers and texts off the front of a text; bad says that there were none.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) int() int64 {
	n, size := binary.Varint([]byte(r.rest[:min(len(r.rest), binary.MaxVarintLen64)]))
	if size <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() string {
	n, size := binary.Uvarint([]byte(r.rest[:min(len(r.rest), binary.MaxVarintLen64)]))
	if size <= 0 || n > uint64(len(r.rest)-size) {
		r.bad = true
		return ""
	}
	text := r.rest[size : size+int(n)]
	r.rest = r.rest[size+int(n):]
	return text
}

// appendValue writes a value of an expression, with its type.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case int64:
		return binary.AppendVarint(append(b, 'i'), v)
	case float64:
		return binary.AppendVarint(append(b, 'd'), int64(math.Float64bits(v)))
	case string:
		return append(binary.AppendUvarint(append(b, 's'), uint64(len(v))), v...)
	}
	raw, err := json.Marshal(v)
	if err != nil { // no JSON: what is read instead is nothing that could be taken for it
		return append(b, 'x')
	}
	return append(binary.AppendUvarint(append(b, 'j'), uint64(len(raw))), raw...)
}

// value reads what appendValue wrote.
func (r *reader) value() any {
	if r.rest == "" {
		r.bad = true
		return nil
	}
	kind := r.rest[0]
	switch r.rest = r.rest[1:]; kind {
	case 't', 'f':
		return kind == 't'
	case 'i':
		return r.int()
	case 'd':
		return math.Float64frombits(uint64(r.int()))
	case 's':
		return r.text()
	case 'j':
		if v, err := values.ParseJSON("", []byte(r.text()), limits); err == nil {
			return v.Native()
		}
	}
	r.bad = true
	return nil
}

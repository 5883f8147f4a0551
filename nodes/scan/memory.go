package scan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"

	"dagrun.dev/internal/regular"
	values "dagrun.dev/internal/tree"
)

// A memory is what an earlier scan of the same files has found out. It is one file outside of any run, and nothing is
// lost with it: what is not in it is read anew.
type memory struct {
	file    string   // empty: there is no place for it
	about   string   // digest of the expressions: values of others are not taken
	records []record // by path
	files   []entry  // of all records
}

// A record is what is known of an item.
type record struct {
	from, to int    // its files: its own, and its content by path
	meta     string // what is in its own file, as JSON; empty: not known
	problem  string // what is wrong with that file
	values   string // those of the formulas that last, as these files gave them; empty: not computed
}

// An entry is what is known of a file. No file has a stamp that is zero.
type entry struct {
	path   string
	stamp  stamp
	digest string
}

// A stamp is what says, without opening a file, that it is the same with the same content.
type stamp struct {
	size     int64
	modified int64 // ns
	changed  int64 // ns: the inode, which nobody can set back
	inode    uint64
}

// young is how long after its last change a file is not believed to be the same by its stamp: the clock of a file
// system may stand still as long.
var young = 2 * time.Second // tests change it

// settled reports whether a file that had this stamp at an instant cannot change without getting another.
func (s stamp) settled(at time.Time) bool {
	return s.changed != 0 && s.changed < at.Add(-young).UnixNano()
}

const (
	memoryFormat = "dagrun scan 2\n"
	mostMemory   = 4 << 30 // bytes, far above what a million items need
)

// remember reads what is known of the files that settings name below a folder. What cannot be read is not known.
func remember(cache, dir string, s *settings, about string) *memory {
	m := &memory{about: about}
	if cache == "" {
		return m
	}
	// They are texts: no error.
	what, _ := json.Marshal([]any{dir, s.Items, s.Meta, s.Content, s.Parse, s.MaxKB, s.Skip, s.Nested})
	m.file = filepath.Join(cache, "scan", sumOf(what)[:32])
	if data, err := regular.Read(m.file, mostMemory); err == nil {
		m.records, m.files, _ = decode(data, about)
	}
	return m
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// keep writes what is known now in the place of what was. A failure costs time in the next scan and nothing else.
func (m *memory) keep(data []byte) {
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
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), m.file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// encode writes records with a digest over all of it in the end, so that whatever happens to the file is noticed.
func encode(about string, n int, at func(i int) (r record, files []entry)) []byte {
	b := append(make([]byte, 0, 800*n+100), memoryFormat...)
	text := func(list ...string) {
		for _, s := range list {
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	text(about)
	for i := range n {
		r, files := at(i)
		text(r.meta, r.problem, r.values)
		b = binary.AppendVarint(b, int64(len(files)))
		for _, x := range files {
			text(x.path, x.digest)
			for _, n := range []int64{x.stamp.size, x.stamp.modified, x.stamp.changed, int64(x.stamp.inode)} {
				b = binary.AppendVarint(b, n)
			}
		}
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// limits bound what one file may hold.
var limits = values.Limits{Depth: 64, Values: 100_000, Aliases: 1_000}

var errDamaged = errors.New("not what was written")

// decode reads what encode wrote. Values that other expressions gave are left out.
func decode(data []byte, about string) (records []record, files []entry, err error) {
	end := len(data) - sha256.Size
	if end < len(memoryFormat) || string(data[:len(memoryFormat)]) != memoryFormat ||
		sha256.Sum256(data[:end]) != [sha256.Size]byte(data[end:]) {
		return nil, nil, errDamaged
	}
	r := reader{rest: string(data[len(memoryFormat):end])}
	same := r.text() == about
	records, files = make([]record, 0, end/500), make([]entry, 0, end/120)
	for r.rest != "" && !r.bad {
		x := record{from: len(files), meta: r.text(), problem: r.text(), values: r.text()}
		for n := r.int(); n > 0 && !r.bad; n-- {
			x := entry{path: r.text(), digest: r.text()}
			x.stamp = stamp{r.int(), r.int(), r.int(), uint64(r.int())}
			files = append(files, x)
		}
		x.to = len(files)
		r.bad = r.bad || x.from == x.to
		if !same {
			x.values = ""
		}
		records = append(records, x)
	}
	if r.bad {
		return nil, nil, errDamaged
	}
	return records, files, nil
}

// A reader takes numbers and texts off the front of a text; bad says that there were none.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) int() int64 {
	n := r.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) uint() uint64 {
	n, length := binary.Uvarint([]byte(r.rest[:min(len(r.rest), binary.MaxVarintLen64)])) // on the stack: not copied twice
	r.bad = r.bad || length <= 0
	r.rest = r.rest[max(length, 0):]
	return n
}

func (r *reader) text() string {
	n := r.uint()
	if n > uint64(len(r.rest)) {
		r.bad = true
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// missing stands for a value that was not computed.
type missing struct{}

// appendValue writes a value of an expression, with its type.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case missing:
		return append(b, 'm')
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
	case 'm':
		return missing{}
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

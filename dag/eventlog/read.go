package eventlog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"dagrun.dev/dag/eventlog/chain"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// A Tail says what was found behind the last whole event. The zero Tail is a clean end.
type Tail struct {
	Line   int64  // of the first bad line
	Offset int64  // where it begins
	Bytes  int64  // from there to the end of the file
	Why    string // what is wrong with it

	Unmarked bool // the mark beside the log is damaged: had durable events been cut off, that would not show
}

// Damaged says that the log or the snapshot cannot be trusted. The program ends with exit status 5.
type Damaged struct {
	File   string
	Line   int64 // 0 where it does not apply
	Offset int64
	Why    string
	WayOut string // what the user can do

	Salvage bool     // one way is to go on with the events before it, see run.Options
	Before  []string // checkpoints to which one can go back, the newest first
}

func (d *Damaged) Error() string {
	if d.Line == 0 {
		return fmt.Sprintf("EVENT_CHAIN_BROKEN: %s: %s; %s", d.File, d.Why, d.WayOut)
	}
	return fmt.Sprintf("EVENT_CHAIN_BROKEN: %s line %d (byte %d) %s; %s", d.File, d.Line, d.Offset, d.Why, d.WayOut)
}

const wayOut = "restore a copy of the file, go back to a checkpoint (dagrun revert), " +
	"or archive this run and start over (dagrun apply --fresh)"

// Read verifies the events after from and hands them to fold with their envelopes. It never
// writes: a torn tail is reported and left. It may be called while a writer appends: then the last
// line may be half there. An error of fold ends the reading and is returned. With an error the head is
// that of the last event that was read and folded.
func Read(fsys disk.FS, name string, from Head, fold func(*machine.Event, *Envelope) error) (Head, Tail, error) {
	if err := refuseOther(fsys, name); err != nil {
		return from, Tail{}, err
	}
	f, err := disk.OpenRegular(fsys, name)
	if err != nil {
		return from, Tail{}, err
	}
	defer f.Close()
	r, err := newReader(fsys, name, f, from)
	if err != nil {
		return from, Tail{}, err
	}
	head, tail, err := r.run(fold)
	tail.Unmarked = r.unmarked
	return head, tail, err
}

// A reader goes over a log once.
type reader struct {
	name   string // path, for messages
	file   disk.File
	size   int64
	in     *bufio.Reader
	chain  *chain.Chain // nil before the first line
	head   Head
	synced Head // the last head known to be durable
	buf    []byte

	unmarked bool
}

func newReader(fsys disk.FS, name string, f disk.File, from Head) (*reader, error) {
	synced, damaged := readMark(fsys, name) // before the size: a writer may be at work
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &reader{name: fsys.Path(name), file: f, size: fi.Size(), head: from, synced: synced, unmarked: damaged}
	if r.synced.Offset < from.Offset {
		r.synced = from // a snapshot is written only of what is durable
	}
	if r.size < r.synced.Offset {
		return nil, r.short()
	}
	if from.Seq > 0 {
		if err := r.resume(from); err != nil {
			return nil, err
		}
	}
	rest := r.size - from.Offset
	r.in = bufio.NewReaderSize(io.NewSectionReader(f, from.Offset, rest), int(min(rest, 1<<18)))
	return r, nil
}

// short says what is wrong with a log that has lost something: the line where it breaks, or that its end is missing,
// which no line shows.
func (r *reader) short() error {
	all := io.NewSectionReader(r.file, 0, r.size)
	lines := &reader{name: r.name, size: r.size, in: bufio.NewReader(all)} // without the mark, so that its end may be torn
	if _, _, err := lines.run(func(*machine.Event, *Envelope) error { return nil }); err != nil && r.size > 0 {
		return err
	}
	return r.damaged(0, 0, fmt.Errorf("has %d bytes, but %d (event %d) were durable: its end is missing",
		r.size, r.synced.Offset, r.synced.Seq))
}

// resume checks that the log holds the event that from names where it says.
func (r *reader) resume(from Head) error {
	line, err := lineBefore(r.file, from.Offset)
	if err != nil {
		return err
	}
	env, err := chain.Split(line)
	if err != nil || env.EventID != chain.EventID(from.Seq) ||
		env.EventHash != from.Hash || env.EventHash != env.Digest() {
		return r.damaged(from.Seq, from.Offset-int64(len(line)), errors.New("is not the event that the snapshot ends with"))
	}
	r.chain = chain.New(env.RunID, from)
	return nil
}

// run folds everything that follows.
func (r *reader) run(fold func(*machine.Event, *Envelope) error) (Head, Tail, error) {
	for {
		line, err := r.line()
		if err == io.EOF {
			if r.head.Seq == 0 {
				return r.head, Tail{}, r.damaged(1, 0, errors.New("holds no event"))
			}
			return r.head, Tail{}, nil
		}
		if err != nil {
			return r.head, Tail{}, err
		}
		if r.chain == nil {
			env, _ := chain.Split(line)
			r.chain = chain.New(env.RunID, Head{})
		}
		e, env, bad := r.chain.Next(line)
		if bad == nil {
			bad = r.admit(&e, &env, int64(len(line)))
		}
		if bad != nil {
			tail, err := r.tail(int64(len(line)), bad)
			return r.head, tail, err
		}
		next := Head{Seq: e.Seq, Hash: env.EventHash, Offset: r.head.Offset + int64(len(line))}
		if err := fold(&e, &env); err != nil {
			return r.head, Tail{}, err
		}
		r.head = next
	}
}

// admit checks what the chain does not.
func (r *reader) admit(e *machine.Event, env *Envelope, size int64) error {
	if e.Seq == 1 {
		b, ok := e.Body.(*machine.RunCreatedBody)
		switch {
		case !ok:
			return errors.New("is not RUN_CREATED")
		case b.RunID != env.RunID:
			return fmt.Errorf("creates run %q under the name of %q", b.RunID, env.RunID)
		case b.Schema > Version:
			return &Newer{What: fmt.Sprintf("the log has schema version %d, this program knows %d", b.Schema, Version)}
		case b.Schema < 1:
			return fmt.Errorf("has schema version %d, which never was", b.Schema)
		}
	}
	if e.Seq == r.synced.Seq && (env.EventHash != r.synced.Hash || r.head.Offset+size != r.synced.Offset) {
		return errors.New("is not the event that was made durable: the log was rewritten")
	}
	return nil
}

// line returns the next line with its line feed; the last one may lack it.
func (r *reader) line() ([]byte, error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		switch {
		case err == nil && len(r.buf) == 0:
			return part, nil
		case err == io.EOF && len(r.buf)+len(part) == 0:
			return nil, io.EOF
		}
		r.buf = append(r.buf, part...)
		if err == nil || err == io.EOF || len(r.buf) > chain.MaxLine {
			return r.buf, nil
		}
		if err != bufio.ErrBufferFull {
			return nil, err
		}
	}
}

// tail decides what a bad line is: the torn end of a log whose writer died, or damage. It is torn
// only if it lies beyond what was durable and no whole event follows: a crash loses an end, never
// a middle. The first line was durable before the log had its name.
func (r *reader) tail(size int64, bad error) (Tail, error) {
	line := r.head.Seq + 1
	if newer, ok := errors.AsType[*Newer](bad); ok {
		newer.File, newer.Line = r.name, line
		return Tail{}, newer
	}
	if r.head.Offset < r.synced.Offset || r.head.Seq == 0 {
		return Tail{}, r.damaged(line, r.head.Offset, bad)
	}
	end := r.head.Offset + size
	for {
		next, err := r.line()
		if err == io.EOF {
			return Tail{Line: line, Offset: r.head.Offset, Bytes: end - r.head.Offset, Why: bad.Error()}, nil
		}
		if err != nil {
			return Tail{}, err
		}
		if chain.Whole(next, r.chain.RunID()) {
			return Tail{}, r.damaged(line, r.head.Offset, bad)
		}
		end += int64(len(next))
	}
}

func (r *reader) damaged(line, offset int64, why error) error {
	return &Damaged{File: r.name, Line: line, Offset: offset, Why: why.Error(), WayOut: wayOut}
}

// lineBefore returns the line that ends at an offset.
func lineBefore(f io.ReaderAt, end int64) ([]byte, error) {
	for size := int64(4096); ; size *= 4 {
		start := max(0, end-size)
		b := make([]byte, end-start)
		if _, err := f.ReadAt(b, start); err != nil && err != io.EOF {
			return nil, err
		}
		if i := bytes.LastIndexByte(b[:max(0, len(b)-1)], '\n'); i >= 0 {
			return b[i+1:], nil
		}
		if start == 0 || size > chain.MaxLine {
			return b, nil
		}
	}
}

package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"dagrun.dev/internal/disk"
)

// SnapshotFormat is the version of the snapshot file. A newer one is refused. An older one can be
// decoded, as checkpoints hold them, but ReadSnapshot finds none: the log gives the same state.
//
//	2  without the artifacts in the machine's state, which the index has
//	3  with the records that state.json needs
//	4  without the last start of a breaker and other leftovers, with the notes of checks of an end without another word
//	5  with checkpoints in the machine's state alone, and without sums and counts that nobody reads
const SnapshotFormat = 5

// noSum stands for the digest while it is computed.
const noSum = "0000000000000000000000000000000000000000000000000000000000000000"

// A Snapshot shortens the replay of a log: the state up to a head. Deleting it loses nothing.
//
// On disk it is one JSON object with its members sorted, "state" last; "sha256" is the digest of
// the whole file with that member's value as 64 zeros.
type Snapshot struct {
	Format  int             `json:"format"`
	Head    Head            `json:"head"`
	Index   json.RawMessage `json:"index"`       // what package run keeps beside the state: artifacts and entries
	Plan    string          `json:"plan_sha256"` // of the adopted plan
	Records json.RawMessage `json:"records"`     // what it keeps for state.json
	RunID   string          `json:"run_id"`
	SavedAt time.Time       `json:"saved_at"`
	Sum     string          `json:"sha256"`
	State   json.RawMessage `json:"state"` // machine.State, canonical
}

// Encode returns the snapshot as it is on disk.
func (s *Snapshot) Encode() ([]byte, error) {
	head := *s
	head.Format, head.Sum, head.State = SnapshotFormat, noSum, json.RawMessage("0")
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // index and records stand in it as they are
	if err := e.Encode(&head); err != nil {
		return nil, err
	}
	b := append(bytes.TrimSuffix(text.Bytes(), []byte("0}\n")), s.State...)
	b = append(b, "}\n"...)
	sum := sha256.Sum256(b)
	hex.Encode(b[sumAt(b):], sum[:])
	return b, nil
}

var sumKey = []byte(`,"sha256":"`)

// sumAt returns where the digest's value begins, -1 when there is none. The keys before it hold no
// such text of their own: ids and hashes cannot, and the index writes "sha256" after a brace only.
func sumAt(b []byte) int {
	i := bytes.Index(b, []byte(`,"saved_at":"`))
	if i < 0 {
		return -1
	}
	j := bytes.Index(b[i:], sumKey)
	if j < 0 || len(b) < i+j+len(sumKey)+64 {
		return -1
	}
	return i + j + len(sumKey)
}

// DecodeSnapshot reads what Encode gives and checks the digest and the required members. raw is kept.
func DecodeSnapshot(raw []byte) (*Snapshot, error) {
	var s Snapshot
	at := sumAt(raw)
	state, ok := []byte(nil), false
	if at >= 0 {
		state, ok = bytes.CutPrefix(raw[at+64:], []byte(`","state":`))
	}
	if ok {
		state, ok = bytes.CutSuffix(state, []byte("}\n"))
	}
	if !ok {
		return nil, errors.New("is not a whole snapshot")
	}
	h := sha256.New()
	h.Write(raw[:at])
	io.WriteString(h, noSum)
	h.Write(raw[at+64:])
	if sum := hex.EncodeToString(h.Sum(nil)); sum != string(raw[at:at+64]) {
		return nil, errors.New("does not match its digest")
	}
	// The state is one of the machine's own and proved by the digest: scanning it twice would cost
	// as much as reading it.
	if err := json.Unmarshal(append(raw[:at+64:at+64], `","state":0}`...), &s); err != nil {
		return nil, err
	}
	s.State = state
	switch {
	case s.Format < 1 || s.Format > SnapshotFormat:
		return nil, fmt.Errorf("has format %d, this program writes %d", s.Format, SnapshotFormat)
	case s.RunID == "" || s.Plan == "" || s.SavedAt.IsZero() || len(state) == 0,
		s.Head.Seq == 0 || s.Head.Hash == "" || s.Head.Offset == 0:
		return nil, errors.New("lacks a required member")
	}
	return &s, nil
}

// BackupName returns the name of the second copy of a file that WriteTwice writes.
func BackupName(name string) string { return name + ".bak" }

// WriteSnapshot replaces a snapshot and its second copy.
func WriteSnapshot(fsys disk.FS, name string, s *Snapshot) error {
	b, err := s.Encode()
	if err != nil {
		return fmt.Errorf("eventlog: snapshot: %w", err)
	}
	return WriteTwice(fsys, name, b)
}

// WriteTwice replaces a file and its second copy: temporary file, sync, read back, compare, rename, then the copy. A
// crash leaves at least one whole file if there was one before.
func WriteTwice(fsys disk.FS, name string, b []byte) error {
	readBack := func(temp string) error {
		same, err := disk.Holds(fsys, temp, b)
		if err == nil && !same {
			err = errors.New("not what was written")
		}
		if err != nil {
			return fmt.Errorf("eventlog: %s read back: %w", fsys.Path(temp), err)
		}
		return nil
	}
	if err := disk.Replace(fsys, name, bytes.NewReader(b), readBack); err != nil {
		return err
	}
	return disk.WriteFile(fsys, BackupName(name), b)
}

// ReadSnapshot reads and checks one snapshot file; fs.ErrNotExist when there is none of this format.
func ReadSnapshot(fsys disk.FS, name string) (*Snapshot, error) {
	b, err := disk.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	s, err := DecodeSnapshot(b)
	if err != nil {
		return nil, fmt.Errorf("%s %w", fsys.Path(name), err)
	}
	if s.Format < SnapshotFormat {
		return nil, &fs.PathError{Op: "use", Path: fsys.Path(name), Err: fs.ErrNotExist}
	}
	return s, nil
}

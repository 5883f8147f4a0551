package run

import (
	"io"

	"dagrun.dev/dag/machine"
)

// An Attempt names one attempt of a node.
type Attempt struct {
	Node                string
	Generation, Attempt int
}

// An Output is what an attempt leaves beside its values.
type Output struct {
	Writes  map[string]string // artifact name -> absolute path of the staged file
	Entries []Entry           // for accumulators, in order
}

// An Entry is one text for an accumulator.
type Entry struct {
	Accumulator string            `json:"accumulator"`
	Text        string            `json:"text"`
	Meta        map[string]string `json:"meta,omitempty"`
}

// Publish makes an attempt's output part of the run: objects are stored and synced, the present
// versions backed up into the node's folder, ARTIFACT_WRITTEN recorded through record, the files
// renamed to their live places, the accumulators' files renewed. Then the caller records
// WORK_ITEM_FINISHED{completed}. Until that is recorded no reader sees the output.
//
// It is called from the attempt's goroutine and does slow work there; record is the caller's way to
// have the owner call Record (and is called once, at most). Artifacts whose content did not change
// are recorded again, without a new backup.
func (r *Run) Publish(a Attempt, out Output, record func(...machine.Body) error) error {
	panic("contract")
}

// Artifact opens the version of an artifact that a node sees: the last one written by an ancestor (or
// adopted from a user's edit since); fs.ErrNotExist when there is none. Owner's goroutine; the
// returned reader may be used from any.
func (r *Run) Artifact(node, name string) (io.ReadCloser, error) { panic("contract") }

// ArtifactDigest is the digest of what Artifact opens; empty when there is none.
func (r *Run) ArtifactDigest(node, name string) string { panic("contract") }

// Entries returns the entries of an accumulator that a node sees: those of its ancestors in plan
// order, the newest Cap of them.
func (r *Run) Entries(node, accumulator string) ([]Entry, error) { panic("contract") }

// File opens a declared input file as it was when the plan was adopted. Any goroutine.
func (r *Run) File(path string) (io.ReadCloser, error) { panic("contract") }

// Keep creates a file in an attempt's node folder (NAME, or NAME.gN from generation 2 on), which is
// made on first need. Nothing is overwritten: an existing file of that name belongs to an earlier
// attempt and is renamed to stem-FAILED-N.ext first. Any goroutine.
func (r *Run) Keep(a Attempt, name string) (io.WriteCloser, error) { panic("contract") }

// KeepFile moves a file (absolute path, same rules as Keep) into the node's folder; it is linked or
// renamed when it lies on the same disk, else copied.
func (r *Run) KeepFile(a Attempt, name, path string) error { panic("contract") }

// Failed renames what a failed attempt kept under name to stem-FAILED-<attempt>.ext; no file, no
// error. Any goroutine.
func (r *Run) Failed(a Attempt, name string) error { panic("contract") }

// NodeDir returns the absolute path of a node's folder. It need not exist.
func (r *Run) NodeDir(node string, generation int) string { panic("contract") }

// Staging makes an empty folder for one attempt's files, inside the run directory so that publishing
// is a rename, and returns its absolute path. Leftovers are swept by the next Open. Any goroutine.
func (r *Run) Staging(name string) (string, error) { panic("contract") }

package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/regular"
)

// An origin says where a run's specification lies: the folder that its nodes work in. It is no part of the run's
// record, which can be moved. Where the run lies below that folder the way up to it counts, so that a project that was
// copied or moved acts on itself; otherwise the folder counts only as long as the run is where it was then.
type origin struct {
	Dir  string `json:"dir"`          // absolute folder of the specification
	File string `json:"file"`         // name of one of its files there
	Run  string `json:"run"`          // absolute directory of the run
	Up   string `json:"up,omitempty"` // from there to Dir, such as ../..; empty where the run does not lie below it
	// Sources are the files in Dir that the plan was made of, which nothing is published over.
	Sources []string `json:"sources,omitempty"`
	// Digests are those of what Sources held when the plan was taken up; empty for one that could not be read.
	Digests []string `json:"digests,omitempty"`
}

// originName is its file in the run's own folder.
const originName = dag.OwnOrigin

// newOrigin says where the run in dir has its specification.
func newOrigin(dir string, res *compile.Result) (*origin, error) {
	o := &origin{Dir: res.Dir, Sources: res.Sources}
	for _, file := range res.Source.Files {
		if filepath.Dir(file) == res.Dir {
			o.File = filepath.Base(file)
			break
		}
	}
	for _, source := range o.Sources {
		o.Digests = append(o.Digests, digestOf(filepath.Join(o.Dir, source)))
	}
	return o, o.place(dir)
}

// place notes where the run is.
func (o *origin) place(dir string) (err error) {
	if o.Run, err = filepath.Abs(dir); err == nil {
		o.Up = upTo(o.Dir, o.Run)
	}
	return err
}

// upTo returns the way from a folder up to one that it lies below, empty where it does not.
func upTo(above, from string) string {
	up, err := filepath.Rel(from, above)
	if err != nil || strings.Trim(up, "./") != "" {
		return ""
	}
	return up
}

// findOrigin finds the folder of the specification of the run in dir. told is the folder that the user names, empty
// for the one on record; what the user names is to be recorded.
func findOrigin(dir, told string) (folder string, record *origin, err error) {
	o, err := readOrigin(dir)
	if err != nil {
		return "", nil, err
	}
	if told != "" {
		if o.Dir, err = filepath.Abs(told); err == nil && !o.in(o.Dir) {
			err = fmt.Errorf("--spec-dir: %s is not the folder of the run's specification: it holds no %s", told, o.wanted())
		}
		return o.Dir, &o, errors.Join(err, o.place(dir))
	}
	here, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	if up := filepath.Join(here, o.Up); o.Up != "" && o.in(up) {
		return up, nil, nil
	}
	tell := fmt.Sprintf("Say which specification it is to work with: add --spec-dir FOLDER, or run "+
		"dagrun apply SPEC --output-dir %s", dir)
	switch {
	case !o.stays(here):
		was := cmp.Or(o.Run, "a place that is not known")
		return "", nil, fmt.Errorf("the run in %s was moved or copied: it was recorded in %s, with its specification in %s. "+
			"What its nodes do there may be another run's. %s", dir, was, o.Dir, tell)
	case !o.in(o.Dir):
		return "", nil, fmt.Errorf("the specification of the run in %s is gone: %s holds no %s. %s",
			dir, o.Dir, o.wanted(), tell)
	}
	return o.Dir, nil, nil
}

// in reports whether a folder holds the specification.
func (o *origin) in(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, o.File))
	return err == nil && (o.File != "" || info.IsDir())
}

func (o *origin) wanted() string {
	if o.File == "" {
		return "folder"
	}
	return o.File
}

// stays reports whether the run, which is in the folder here, is where it was recorded.
func (o *origin) stays(here string) bool {
	then, err := os.Stat(o.Run)
	if err != nil {
		return false
	}
	now, err := os.Stat(here)
	return err == nil && os.SameFile(then, now)
}

func readOrigin(dir string) (o origin, err error) {
	own, err := disk.Open(filepath.Join(dir, run.Dir))
	if err != nil {
		return o, err
	}
	defer own.Close()
	data, err := disk.ReadFile(own, originName)
	if errors.Is(err, fs.ErrNotExist) {
		return o, fmt.Errorf("%s does not record where its specification is: run dagrun apply SPEC once", dir)
	}
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err != nil {
		return o, fmt.Errorf("cannot read %s: %w: move it away and run dagrun apply SPEC once", own.Path(originName), err)
	}
	if o.Run == "" { // an earlier version kept the folder alone
		o.Up = upTo(o.Dir, own.Path(".."))
	}
	return o, nil
}

// edited returns the first source that holds something else, in a folder, than when the plan was taken up; empty: none.
func (o *origin) edited(folder string) string {
	for i, digest := range o.Digests {
		if i < len(o.Sources) && digestOf(filepath.Join(folder, o.Sources[i])) != digest {
			return o.Sources[i]
		}
	}
	return ""
}

func digestOf(file string) string {
	data, err := regular.Read(file, 1<<40)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}

func (o *origin) write(dir string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	own, err := disk.Open(filepath.Join(dir, run.Dir))
	if err != nil {
		return err
	}
	defer own.Close()
	return disk.WriteFile(own, originName, append(data, '\n'))
}

// addSpecDir adds the flag by which a user says where the specification of a run lies.
func addSpecDir(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "spec-dir", "",
		"folder of the run's specification, for a run that was moved or copied (default: as recorded)")
}

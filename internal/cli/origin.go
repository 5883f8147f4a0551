package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dagrun.dev/dag"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
)

// An origin says where on this machine a run's specification lies: what nodes run in and apply
// may leave out. It is no part of the run's record, which can be moved.
type origin struct {
	Dir      string   `json:"dir"`  // absolute folder of the specification
	Spec     string   `json:"spec"` // absolute path, or empty
	Pipeline string   `json:"pipeline,omitempty"`
	Set      []string `json:"set,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// originName is its file in the run's own folder.
const originName = dag.OwnOrigin

func readOrigin(dir string) (origin, error) {
	var o origin
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
	if st, err := os.Stat(o.Dir); err != nil || !st.IsDir() {
		return o, fmt.Errorf("the folder of the specification, %s, is missing: run dagrun apply SPEC once", o.Dir)
	}
	return o, nil
}

func (o origin) write(dir string) error {
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

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dagrun.dev/dag/run"
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

func originFile(dir string) string { return filepath.Join(dir, run.Dir, "origin.json") }

func readOrigin(dir string) (origin, error) {
	var o origin
	data, err := os.ReadFile(originFile(dir))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s does not say where its specification is: use dagrun apply SPEC once", dir)
		}
		return o, err
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("%s: %w", originFile(dir), err)
	}
	if st, err := os.Stat(o.Dir); err != nil || !st.IsDir() {
		return o, fmt.Errorf("the folder of the specification, %s, is gone: use dagrun apply SPEC once", o.Dir)
	}
	return o, nil
}

func (o origin) write(dir string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	tmp := originFile(dir) + ".tmp"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, originFile(dir))
}

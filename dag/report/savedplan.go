package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrNotAPlan says that a file holds something else than a saved plan.
var ErrNotAPlan = errors.New("not a saved plan")

// ReadPlan reads a saved plan. Its name may end as it likes; a file that neither ends in .json nor
// begins as plan -o writes is not read whole.
func ReadPlan(name string) (*Plan, error) {
	if st, err := os.Stat(name); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, ErrNotAPlan
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if start, _ := r.Peek(64); filepath.Ext(name) != ".json" && !bytes.Contains(start, []byte(`"dagrun_plan"`)) {
		return nil, ErrNotAPlan
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var mark struct {
		Format *int `json:"dagrun_plan"`
	}
	if json.Unmarshal(data, &mark) != nil || mark.Format == nil {
		return nil, ErrNotAPlan
	}
	if *mark.Format > PlanFormat {
		return nil, fmt.Errorf("%s: a newer version of the program saved this plan", name)
	}
	p := &Plan{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

package runlog

import (
	"encoding/json"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/yamltree"
)

// SaveSummary writes the summary of a run that has ended beside the logs as run-<id>.yaml, the fields of its JSON in
// their order.
func SaveSummary(o run.Options, s *report.Summary) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	text, err := yamltree.Blocks(raw)
	if err != nil {
		return err
	}
	own, err := run.OpenOwn(o)
	if err != nil {
		return err
	}
	defer own.Close()
	if err := own.MkdirAll(run.LogsDir); err != nil {
		return err
	}
	return disk.WriteFile(own, summaryName(s.RunID), text)
}

// HasSummary reports whether the summary of a run is there.
func HasSummary(o run.Options, id string) bool {
	own, err := run.OpenOwn(o)
	if err != nil {
		return false
	}
	defer own.Close()
	_, err = own.Lstat(summaryName(id))
	return err == nil
}

func summaryName(id string) string { return run.LogsDir + "/run-" + id + ".yaml" }

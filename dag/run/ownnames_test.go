package run

import (
	"slices"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
)

func TestOwnNamesHoldWhatTheRunWrites(t *testing.T) {
	names := []string{logFile, stateFile, eventlog.BackupName(stateFile), lockFile, objectsDir, stagingDir, spoolDir,
		checkpoints, archives, revertsDir, LogsDir}
	if !slices.Equal(names, dag.OwnNames) {
		t.Errorf("the run writes %v, dag.OwnNames are %v", names, dag.OwnNames)
	}
}

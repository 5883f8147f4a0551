package state

import (
	"encoding/json"
	"time"

	"dagrun.dev/dag"
)

// A Record is what is known of a node, or of several nodes together.
type Record struct {
	Node        string    `json:"node,omitempty"` // id, where it is not the key
	Kind        string    `json:"kind,omitempty"`
	Description string    `json:"description,omitempty"`
	Status      string    `json:"status"`               // waiting, running, retrying, completed, failed, skipped, ...
	Generation  int       `json:"generation,omitempty"` // from the second on
	Started     time.Time `json:"startedAt,omitzero"`   // first start
	Completed   time.Time `json:"completedAt,omitzero"`
	Duration    int64     `json:"durationMs,omitempty"`
	Retries     int       `json:"retryCount,omitempty"`
	Reason      string    `json:"reason,omitempty"` // why it did not complete
	Dir         string    `json:"dir,omitempty"`    // of what its attempts kept

	*leavings // nil of most nodes of a large run

	Labels map[string]string `json:"labels,omitempty"`
}

// leavings are what attempts have left.
type leavings struct {
	PromptPath   string `json:"promptPath,omitempty"`
	RawOutput    string `json:"rawOutputPath,omitempty"`
	Backup       string `json:"backupPath,omitempty"`   // of the file before it was written
	ArtifactPath string `json:"artifactPath,omitempty"` // the run's artifact where it wrote that, else the last it wrote
	ArtifactHash string `json:"artifactHash,omitempty"`

	Passed   *bool                      `json:"validationPassed,omitempty"`
	Details  json.RawMessage            `json:"validationDetails,omitempty"`
	Warnings []string                   `json:"warnings,omitempty"`
	Tokens   *Tokens                    `json:"tokens,omitempty"`
	Values   map[string]json.RawMessage `json:"values,omitempty"`   // the short ones that it recorded
	Salvaged []string                   `json:"salvaged,omitempty"` // files and values that count though it has failed
}

// has is what attempts have left, for reading only: never nil. Whoever changes it calls edit.
func (r *Record) has() *leavings {
	if r.leavings == nil {
		return &nothing
	}
	return r.leavings
}

var nothing leavings

func (r *Record) edit() *leavings {
	if r.leavings == nil {
		r.leavings = new(leavings)
	}
	return r.leavings
}

// Tokens are what attempts have used.
type Tokens struct {
	Input      int64   `json:"inputTokens"` // not from a cache
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheReadTokens"`
	CacheWrite int64   `json:"cacheWriteTokens"`
	Cost       dag.USD `json:"estimatedCostUsd"`
}

package dag

// OwnNames are the first path elements of what a run keeps for itself in its own folder, beside the folders of
// its nodes: no node may write there. The package run gives them their meaning.
var OwnNames = []string{"events.ndjson", "state.json", "state.json.bak", "lock", "objects", "staging", "spool",
	"checkpoints", "archives", "reverts", "logs"}

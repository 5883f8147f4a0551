package dag

import "strings"

// Names in the folder that a run keeps for itself, beside the folders of its nodes. Whoever makes a file or
// folder there takes its name from here, so that Own knows them all.
const (
	OwnLog         = "events.ndjson" // with files of its own beside it: OwnLog + ".synced" and others
	OwnSnapshot    = "snapshot.json" // what the log was folded to, so that it need not be folded again
	OwnState       = "state.json"    // the same for people and their programs, in words of the pipeline
	OwnLock        = "lock"
	OwnObjects     = "objects"
	OwnCopies      = "copies" // what stands in OwnObjects too, and what did not go there
	OwnStaging     = "staging"
	OwnSpool       = "spool"
	OwnCheckpoints = "checkpoints"
	OwnArchives    = "archives"
	OwnReverts     = "reverts"
	OwnLogs        = "logs"
	OwnInbox       = "inbox"          // requests of other processes
	OwnOrigin      = "origin.json"    // where the specification is
	OwnPublished   = "published.json" // what earlier runs have put beside the specification
	OwnProcesses   = "processes"      // of the program that carries the run on
	OwnPrevious    = "previous.json"  // the tick before, and what the day has spent
	OwnWatch       = "watch"          // lock of the process that waits for files to change
	OwnTick        = "tick.json"      // of one that has ended
	OwnRemoved     = "removed.json"   // ticks that are not kept
	OwnTemp        = ".tmp-"          // what names of unfinished files begin with
)

var ownNames = []string{OwnLog, OwnSnapshot, OwnState, OwnLock, OwnObjects, OwnCopies, OwnStaging, OwnSpool,
	OwnCheckpoints, OwnArchives, OwnReverts, OwnLogs, OwnInbox, OwnOrigin, OwnProcesses, OwnPrevious,
	OwnPublished, OwnWatch, OwnTick, OwnRemoved}

// Own reports whether a path in that folder begins with a name which the run keeps for itself, upper and lower
// case alike: nothing of a node may be there.
func Own(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	first = strings.ToLower(first)
	for _, name := range ownNames {
		if first == name || strings.HasPrefix(first, name+".") {
			return true
		}
	}
	return strings.HasPrefix(first, OwnTemp)
}

package eventlog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"dagrun.dev/internal/disk"
)

// MarkName returns the name of a log's mark: a small file beside the log that holds the last head
// known to be durable. It is written after each sync of the log and never synced itself: after a
// loss of power or on a full disk it may be older than the truth, never newer. Without it a torn
// tail could not be told from a log that somebody cut: what the mark covers cannot be torn.
//
//	seq(10) offset(16) event_hash(64) check(16)\n
func MarkName(log string) string { return log + ".synced" }

func encodeMark(h Head) []byte {
	b := fmt.Appendf(nil, "%010d %016d %s ", h.Seq, h.Offset, h.Hash)
	sum := sha256.Sum256(b)
	return append(append(b, hex.EncodeToString(sum[:8])...), '\n')
}

// readMark returns the zero Head when there is no mark, it cannot be read or is damaged: it only ever adds knowledge.
func readMark(fsys disk.FS, log string) (h Head, damaged bool) {
	b, err := disk.ReadFile(fsys, MarkName(log))
	if err != nil {
		return Head{}, false
	}
	_, err = fmt.Sscanf(string(b), "%d %d %s", &h.Seq, &h.Offset, &h.Hash)
	if err != nil || string(encodeMark(h)) != string(b) {
		return Head{}, true
	}
	return h, false
}

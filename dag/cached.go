package dag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// keptFor is how many seconds a service keeps the beginning of a prompt after it was sent or read last.
const keptFor = 300

// CachedShare estimates which share of the prompts' known characters will have been sent shortly before, as the same
// beginning: nodes begin when the longest chain of estimated times before them is over, and no condition is false.
// Only nodes for which runs is true ask anything. What has no size yet counts on neither side. The share is 0 where no
// prompt has a beginning to share.
func CachedShare(g *Graph, runs func(i int32) bool) float64 {
	begin := make([]float64, g.Len())
	for i := range int32(g.Len()) { // in plan order needs come first
		for _, need := range g.Needs(i) {
			begin[i] = max(begin[i], begin[need]+g.Node(need).Estimate.Seconds)
		}
	}
	order := make([]int32, g.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(begin[a], begin[b]) })
	version := map[string]int{} // of artifacts and accumulators: how many nodes wrote before
	sent := map[string]float64{}
	var read, all int64
	for _, i := range order {
		n := g.Node(i)
		if n.Call != nil && runs(i) {
			all += promptChars(g.Plan, n)
			read += n.Call.read(begin[i], sent, version)
		}
		for _, name := range slices.Concat(n.Writes, n.Appends) {
			version[name]++
		}
	}
	if read == 0 {
		return 0
	}
	return min(1, float64(read)/float64(all))
}

// read returns how much of a prompt that begins now was sent before, and remembers its beginnings.
func (c *Call) read(now float64, sent map[string]float64, version map[string]int) (chars int64) {
	var key strings.Builder
	again := true
	for _, b := range c.Shared {
		key.WriteString(b.Digest)
		for _, name := range b.Reads {
			fmt.Fprintf(&key, " %s:%d", name, version[name])
		}
		at, ok := sent[key.String()]
		if again = again && ok && now-at <= keptFor; again {
			chars += b.Chars
		}
		sent[key.String()] = now
	}
	return chars
}

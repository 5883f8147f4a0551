package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What goes into a heap in any order comes out in order, also where more goes in meanwhile.
func TestHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	before := func(a, b int) bool { return a < b }
	for range 100 {
		var h, want []int
		for n := r.IntN(40); n > 0 || len(want) > 0; n-- {
			if n > 0 && (len(want) == 0 || r.IntN(3) > 0) {
				v := r.IntN(30)
				h, want = pushHeap(h, v, before), append(want, v)
				continue
			}
			if len(want) == 0 {
				break
			}
			var first int
			first, h = popHeap(h, before)
			least := slices.Index(want, slices.Min(want))
			if first != want[least] || len(h) != len(want)-1 {
				t.Fatalf("got %d of %v", first, want)
			}
			want = slices.Delete(want, least, least+1)
		}
	}
}

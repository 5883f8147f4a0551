package machine

// pushHeap adds a value to a heap, whose first element comes before all others.
func pushHeap[T any](h []T, v T, before func(a, b T) bool) []T {
	h = append(h, v)
	for k := len(h) - 1; ; {
		parent := (k - 1) / 2
		if !before(h[k], h[parent]) {
			return h
		}
		h[k], h[parent] = h[parent], h[k]
		k = parent
	}
}

// popHeap takes the first element out of a heap.
func popHeap[T any](h []T, before func(a, b T) bool) (first T, rest []T) {
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for k := 0; ; {
		best := k
		for _, child := range []int{2*k + 1, 2*k + 2} {
			if child < len(h) && before(h[child], h[best]) {
				best = child
			}
		}
		if best == k {
			return first, h
		}
		h[k], h[best] = h[best], h[k]
		k = best
	}
}

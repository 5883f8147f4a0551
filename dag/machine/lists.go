package machine

// none is the index of no node.
const none int32 = -1

// indexes returns the members of a set of nodes, in index order.
func indexes(in []bool) (list []int32) {
	for i := range in {
		if in[i] {
			list = append(list, int32(i))
		}
	}
	return list
}

// has reports whether a node is in a set, which may have been made before there were so many nodes.
func has(set []bool, i int32) bool { return int(i) < len(set) && set[i] }

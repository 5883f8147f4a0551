package dag

// A NodeError is a problem of a graph that is the fault of one node's field.
type NodeError struct {
	Node  string // id
	Field string // needs, reads, writes: the field of the specification
	Text  string // on one line, naming every node concerned
}

func (e *NodeError) Error() string { return e.Text }

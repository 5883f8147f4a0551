package dag

// A Graph is a plan with its edges by index. Nodes are addressed by int32 index in plan order;
// indexes exist in memory only. A Graph is immutable and may be read from any goroutine.
type Graph struct {
	Plan *Plan
	// implementation: CSR edge arrays, id lookup, critical-path weights
	_ struct{}
}

// NewGraph checks p (unknown needs, duplicate ids, cycles, unordered writers of one artifact,
// unordered readers of an accumulator) and indexes it. All problems are returned joined, each
// naming its node.
func NewGraph(p *Plan) (*Graph, error) { panic("contract") }

// Len returns the number of nodes.
func (g *Graph) Len() int { panic("contract") }

// Index returns the index of a node id.
func (g *Graph) Index(id string) (int32, bool) { panic("contract") }

// Node returns the node at an index.
func (g *Graph) Node(i int32) *Node { return &g.Plan.Nodes[i] }

// Needs and Dependents return the direct neighbours in plan order. The slices are not to be changed.
func (g *Graph) Needs(i int32) []int32      { panic("contract") }
func (g *Graph) Dependents(i int32) []int32 { panic("contract") }

// Rank is the longest expected path in seconds from the start of node i to the end of the run
// (weights: estimate seconds, else 1). The scheduler starts the highest first.
func (g *Graph) Rank(i int32) float64 { panic("contract") }

// Extend returns the graph of the plan with more nodes: those of a run-time foreach.
func (g *Graph) Extend(of string, nodes []Node) (*Graph, error) { panic("contract") }

// Digest returns the lower-case hex sha256 of p's canonical JSON.
func (p *Plan) Digest() string { panic("contract") }

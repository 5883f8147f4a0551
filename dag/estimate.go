package dag

// A Range is what a node is expected to take.
type Range struct {
	USD     [3]USD     // low, expected, high
	Seconds [3]float64 // low, expected, high
	Tokens  [3]int64   // input and output together
	Known   bool       // false: it may cost money and nobody can say how much; USD is then the reserve
	From    string     // estimate | tokens | reserve | free: where the money comes from
}

// EstimateNode returns the range of node i of p for one attempt that ends well (low and
// expected) and for all attempts its policy allows (high): the spec's estimate, else tokens
// (a quarter of the characters, rounded up) times the price table, else the reserve.
// sizes gives the bytes of files and recorded artifacts that become part of the prompt; nil
// means those of p.Files.
func EstimateNode(p *Plan, i int32, sizes func(name string) (int64, bool)) Range { panic("contract") }

// PriceOf returns the price of a model by its exact name, else by "provider/model" where only
// the table has the provider and one entry fits. It never guesses by prefix. The second result
// is false when the table does not know the model.
func PriceOf(p *Plan, model string) (Price, bool) { panic("contract") }

// Cost prices one request by its four disjoint token counts. A missing cache price counts as
// the input price.
func (p Price) Cost(input, cacheRead, cacheWrite, output int64) USD { panic("contract") }

package dag

import (
	"math"
	"strings"
)

// A Range is what a node is expected to take.
type Range struct {
	USD     [3]USD     // low, expected, high
	Seconds [3]float64 // low, expected, high; 0 = unknown
	Tokens  [3]int64   // input and output together
	Known   bool       // false: it may cost money and nobody can say how much; USD is then the reserve
	From    string     // free | estimate | tokens | reserve: where the money comes from
}

// EstimateNode returns the range of node i of p: low and expected are one attempt that ends
// well, high is all attempts that its policy allows. Money is the spec's estimate, else tokens
// (a quarter of the characters, rounded up) times the price table, else the reserve. sizes gives
// the bytes of artifacts and accumulators that become part of the prompt where they are known;
// nil means nothing is. Input files have the size that the plan says.
func EstimateNode(p *Plan, i int32, sizes func(name string) (int64, bool)) Range {
	n := &p.Nodes[i]
	attempts := max(1, n.Retry.Attempts)
	r := Range{Known: true, From: "free"}
	s := n.Estimate.Seconds
	r.Seconds = [3]float64{s, s, s * float64(attempts)}
	if t := n.Timeout.Attempt.D().Seconds(); t > 0 {
		r.Seconds[2] = t * float64(attempts)
	}
	in, known := promptTokens(p, n, sizes)
	out := outputTokens(n)
	if n.Paid || n.Call != nil {
		r.Tokens = [3]int64{in + out[0], in + out[1], (in + out[2]) * int64(attempts)}
	}
	if t := n.Estimate.Tokens; t > 0 {
		r.Tokens = [3]int64{t, t, max(t, n.Reserve.Tokens) * int64(attempts)}
	}
	switch price, ok := callPrice(p, n); {
	case !n.Paid && n.Estimate.USD == 0:
		return r
	case n.Estimate.USD > 0:
		r.From = "estimate"
		r.USD = [3]USD{n.Estimate.USD, n.Estimate.USD, n.Estimate.USD * USD(attempts)}
	case ok:
		r.From = "tokens"
		for k := range r.USD {
			r.USD[k] = price.Cost(in, 0, 0, out[k])
		}
		r.USD[2] *= USD(attempts)
		r.Known = known
	default:
		r.From, r.Known = "reserve", n.Reserve.USD > 0
		r.USD = [3]USD{0, n.Reserve.USD, n.Reserve.USD * USD(attempts)}
	}
	r.USD[2] = max(r.USD[2], n.Reserve.USD*USD(attempts))
	return r
}

// promptTokens estimates the prompt; the second result is false when the size of a part is unknown.
func promptTokens(p *Plan, n *Node, sizes func(name string) (int64, bool)) (int64, bool) {
	if n.Call == nil {
		return 0, false
	}
	chars, known := n.Call.Chars, true
	for _, path := range n.Call.Files {
		if f, ok := p.FileByPath(path); ok {
			chars += f.Size
		}
	}
	for _, name := range n.Call.Reads {
		size, ok := int64(0), false
		if sizes != nil {
			size, ok = sizes(name)
		}
		chars += size
		known = known && ok
	}
	return Tokens(chars), known
}

// Tokens estimates the tokens of a text: a quarter of its characters, rounded up.
func Tokens(chars int64) int64 { return (chars + 3) / 4 }

// unknownOutput is what an answer is taken to have, in tokens, where no limit is declared.
const unknownOutput = 2000

// outputTokens is a tenth, a half and all of the declared limit.
func outputTokens(n *Node) [3]int64 {
	most := int64(unknownOutput)
	if n.Call != nil && n.Call.MaxOutput > 0 {
		most = n.Call.MaxOutput
	}
	return [3]int64{most / 10, most / 2, most}
}

func callPrice(p *Plan, n *Node) (Price, bool) {
	if n.Call == nil || n.Call.Model == "" {
		return Price{}, false
	}
	return PriceOf(p, n.Call.Model)
}

// PriceOf returns the price of a model by its exact name, else by "provider/model" where only
// the table has the provider and one entry fits. It never guesses by prefix. The second result
// is false when the table does not know the model.
func PriceOf(p *Plan, model string) (Price, bool) {
	var found []Price
	for _, price := range p.Prices { // a table of some dozen rows
		if price.Model == model {
			return price, true
		}
		if provider, name, ok := strings.Cut(price.Model, "/"); ok && provider != "" && name == model {
			found = append(found, price)
		}
	}
	if len(found) == 1 {
		return found[0], true
	}
	return Price{}, false
}

// Cost prices one request by its four disjoint token counts. A missing cache price counts as
// the input price; above the step its prices hold for the whole request.
func (p Price) Cost(input, cacheRead, cacheWrite, output int64) USD {
	if s := p.Step; s != nil && input+cacheRead+cacheWrite > s.Above {
		p.Input, p.Output = or(s.Input, p.Input), or(s.Output, p.Output)
		p.CacheRead, p.CacheWrite = or(s.CacheRead, p.CacheRead), or(s.CacheWrite, p.CacheWrite)
	}
	// Dollars per million tokens are millionths of a dollar per token.
	sum := float64(input)*p.Input + float64(cacheRead)*or(p.CacheRead, p.Input) +
		float64(cacheWrite)*or(p.CacheWrite, p.Input) + float64(output)*p.Output
	return USD(math.Round(sum))
}

func or(a, b float64) float64 {
	if a != 0 {
		return a
	}
	return b
}

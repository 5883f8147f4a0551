package dag

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A Range is what a node is expected to take.
type Range struct {
	USD     [3]USD     // low, expected, high
	Most    USD        // of one attempt
	Seconds [3]float64 // low, expected, high; 0 = unknown
	Tokens  [3]int64   // input and output together
	// Attempts is how many may fail, whatever the failures: high is what all of them take.
	Attempts int
	Known    bool   // false: it may cost money and nobody can say how much; USD is then the reserve
	From     string // free | priced | estimate | reserve: where the money comes from
}

// An Estimator says what the nodes of a plan are expected to take: low and expected are one attempt that
// ends well, high is all attempts that the node's policy allows. Money is the tokens of the prompt (a quarter
// of its characters) and of the answer times the model's price; where no price is known, the specification's
// estimate, else the reserve.
type Estimator struct {
	p       *Plan
	texts   map[string][3]int64 // expected characters of artifacts
	entries map[string]int64    // how many nodes append to an accumulator
}

// NewEstimator returns an estimator for a plan. Artifacts and accumulators are taken to be what the nodes that write
// them are expected to answer, or that of an answer without a declared limit. Input files have the size that the plan
// says.
func NewEstimator(p *Plan) *Estimator {
	e := &Estimator{p: p, texts: map[string][3]int64{}, entries: map[string]int64{}}
	if !slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Call != nil && len(n.Call.Reads) > 0 }) {
		return e // nobody asks
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, name := range n.Appends {
			e.entries[name]++
		}
		out := outputTokens(n)
		for _, name := range n.Writes {
			text := e.texts[name]
			for k := range text {
				text[k] = max(text[k], 4*out[k])
			}
			e.texts[name] = text
		}
	}
	return e
}

// Node estimates a node of the plan.
func (e *Estimator) Node(n *Node) Range {
	attempts := e.p.mostAttempts(n)
	r := Range{Known: true, From: "free", Attempts: attempts}
	s := n.Estimate.Seconds
	r.Seconds = [3]float64{s, s, s * float64(attempts)}
	if t := n.Timeout.Attempt.D().Seconds(); t > 0 {
		r.Seconds[2] = t * float64(attempts)
	}
	in, known := e.prompt(n)
	out := outputTokens(n)
	if t := n.Estimate.Tokens; t > 0 {
		for k := range out {
			out[k] = max(out[0], t-in[k])
		}
	}
	if n.Paid || n.Call != nil {
		r.Tokens = [3]int64{in[0] + out[0], in[1] + out[1], (in[2] + out[2]) * int64(attempts)}
	}
	if t := n.Estimate.Tokens; t > 0 {
		r.Tokens = [3]int64{t, t, max(t, n.Reserve.Tokens) * int64(attempts)}
	}
	switch price, ok := callPrice(e.p, n); {
	case !n.Paid && n.Estimate.USD == 0:
		return r
	case n.Paid && ok:
		r.From, r.Known = "priced", known
		for k := range r.USD {
			r.USD[k] = price.Cost(Usage{Input: in[k], Output: out[k]})
		}
		if !known {
			r.USD[2] = max(r.USD[2], n.Reserve.USD)
		}
	case n.Estimate.USD > 0:
		r.From = "estimate"
		r.USD = [3]USD{n.Estimate.USD, n.Estimate.USD, max(n.Estimate.USD, n.Reserve.USD)}
	default:
		r.From, r.Known = "reserve", n.Reserve.USD > 0
		r.USD = [3]USD{0, n.Reserve.USD, n.Reserve.USD}
	}
	r.Most = r.USD[2]
	r.USD[2] *= USD(attempts)
	return r
}

// entryChars is what a text of an accumulator is taken to have.
const entryChars = 2000

// prompt estimates the tokens of a prompt: low, expected, high; the second result is false when the size of
// a part is unknown.
func (e *Estimator) prompt(n *Node) (tokens [3]int64, known bool) {
	if n.Call == nil {
		return tokens, false
	}
	chars, add := promptChars(e.p, n), [3]int64{}
	known = true
	for _, name := range n.Call.Reads {
		text, written := e.texts[name]
		switch {
		case e.entries[name] > 0:
			most := e.entries[name]
			if a, ok := e.p.AccumulatorByName(name); ok && a.Cap > 0 {
				most = min(most, int64(a.Cap))
			}
			add[1] += most * entryChars / 2 // a reader sees what stands before it
			add[2] += most * entryChars
		case written:
			for k := range add {
				add[k] += text[k]
			}
		default:
			known = false
		}
	}
	for k := range tokens {
		tokens[k] = Tokens(chars + add[k])
	}
	return tokens, known
}

// promptChars is how many characters of a prompt are known: those of what it reads are not.
func promptChars(p *Plan, n *Node) int64 {
	chars := n.Call.Chars
	for _, path := range n.Call.Files {
		if f, ok := p.FileByPath(path); ok {
			chars += f.Size
		}
	}
	return chars
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
	return PriceOf(p.Prices, n.Call.Model)
}

// PriceOf returns the price of a model by its exact name, else by "provider/model" where only
// the table has the provider and one entry fits. It never guesses by prefix. The second result
// is false when the table does not know the model.
func PriceOf(prices []Price, model string) (Price, bool) {
	var found []Price
	for _, price := range prices { // a table of some dozen rows
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

// Usage counts the tokens of requests in four disjoint classes.
type Usage struct {
	Input      int64 `json:"input_tokens,omitempty"` // fresh input
	CacheRead  int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	Output     int64 `json:"output_tokens,omitempty"`
	// CacheWriteHour is how many of CacheWrite are kept for an hour, which costs more than five minutes.
	CacheWriteHour int64 `json:"cache_write_hour_tokens,omitempty"`
}

// Total is the number of tokens of all classes.
func (u Usage) Total() int64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// Plus returns the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite,
		u.Output + v.Output, u.CacheWriteHour + v.CacheWriteHour}
}

// Minus returns the difference.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Input - v.Input, u.CacheRead - v.CacheRead, u.CacheWrite - v.CacheWrite,
		u.Output - v.Output, u.CacheWriteHour - v.CacheWriteHour}
}

// Cost prices one request. A missing cache price counts as the input price, and that of an hour as twice
// the input price; above the step its prices hold for the whole request.
func (p Price) Cost(t Usage) USD {
	if s := p.Step; s != nil && t.Input+t.CacheRead+t.CacheWrite > s.Above {
		p.Input, p.Output = cmp.Or(s.Input, p.Input), cmp.Or(s.Output, p.Output)
		p.CacheRead, p.CacheWrite = cmp.Or(s.CacheRead, p.CacheRead), cmp.Or(s.CacheWrite, p.CacheWrite)
		p.CacheWriteHour = cmp.Or(s.CacheWriteHour, p.CacheWriteHour)
	}
	hour := min(t.CacheWriteHour, t.CacheWrite)
	// Dollars per million tokens are millionths of a dollar per token.
	sum := float64(t.Input)*p.Input + float64(t.CacheRead)*cmp.Or(p.CacheRead, p.Input) +
		float64(t.CacheWrite-hour)*cmp.Or(p.CacheWrite, p.Input) + float64(hour)*cmp.Or(p.CacheWriteHour, 2*p.Input) +
		float64(t.Output)*p.Output
	return USD(math.Round(sum))
}

package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// A priceList is a public list of prices as BerriAI/litellm keeps one
// (model_prices_and_context_window.json): an object of models, prices in dollars per token. It
// holds more than models, and mistakes; each entry is read on its own, when it is asked for.
type priceList struct{ entries map[string]json.RawMessage }

// readPriceList reads a list. Only what is no JSON object is an error.
func readPriceList(raw []byte) (priceList, error) {
	var l priceList
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")), &l.entries); err != nil {
		return l, fmt.Errorf("price list: %w", err)
	}
	return l, nil
}

// notModels are the keys of such lists that explain it.
var notModels = []string{"sample_spec", "fallback_generalizations"}

// price returns the price of a model: of the entry of that name, of provider/model, or of the one that
// names it as an alias. It never guesses by a prefix. Where there is none, why says what is
// wrong with an entry, or is empty when there is no entry.
func (l priceList) price(provider, model string) (p dag.Price, ok bool, why string) {
	names := []string{model}
	if provider != "" {
		names = append(names, provider+"/"+model)
	}
	for _, name := range names {
		if raw, found := l.entries[name]; found && !slices.Contains(notModels, name) {
			p, why = readPrice(model, raw)
			return p, why == "", why
		}
	}
	return l.alias(provider, model)
}

func (l priceList) alias(provider, model string) (p dag.Price, ok bool, why string) {
	names := make([]string, 0, len(l.entries))
	for name, raw := range l.entries {
		if bytes.Contains(raw, []byte(`"aliases"`)) && !slices.Contains(notModels, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // the same one each time
	for _, name := range names {
		var e struct {
			Aliases  []string `json:"aliases"`
			Provider string   `json:"litellm_provider"`
		}
		named := json.Unmarshal(l.entries[name], &e) == nil && slices.Contains(e.Aliases, model)
		if named && (provider == "" || provider == e.Provider) {
			p, why = readPrice(model, l.entries[name])
			return p, why == "", why
		}
	}
	return dag.Price{}, false, ""
}

// above finds the size from which other prices hold.
var above = regexp.MustCompile(`^(?:input|output)_cost_per_token_above_(\d{1,6})k_tokens$`)

// readPrice reads the entry of a model. bad is what is wrong with it.
func readPrice(model string, raw json.RawMessage) (p dag.Price, bad string) {
	p.Model = model
	var e map[string]json.RawMessage
	if json.Unmarshal(raw, &e) != nil {
		return p, "it is no model"
	}
	rate := func(name string) float64 {
		v, why := perToken(e[name])
		if why != "" && bad == "" {
			bad = name + " " + why
		}
		return v
	}
	if e["input_cost_per_token"] == nil || e["output_cost_per_token"] == nil {
		return p, "it has no price per token"
	}
	p.Input, p.Output = rate("input_cost_per_token"), rate("output_cost_per_token")
	p.CacheRead, p.CacheWrite = rate("cache_read_input_token_cost"), rate("cache_creation_input_token_cost")
	p.CacheWriteHour = rate("cache_creation_input_token_cost_above_1hr")
	if k := lowestStep(e); k > 0 {
		suffix := fmt.Sprintf("_above_%dk_tokens", k)
		p.Step = &dag.Step{
			Above:          int64(k) * 1000,
			Input:          rate("input_cost_per_token" + suffix),
			Output:         rate("output_cost_per_token" + suffix),
			CacheRead:      rate("cache_read_input_token_cost" + suffix),
			CacheWrite:     rate("cache_creation_input_token_cost" + suffix),
			CacheWriteHour: rate("cache_creation_input_token_cost_above_1hr" + suffix),
		}
	}
	return p, bad
}

// lowestStep is the prompt size, in thousands of tokens, above which other prices hold; 0 = none.
func lowestStep(e map[string]json.RawMessage) (k int) {
	for name := range e { // the lowest of them: any order will do
		if m := above.FindStringSubmatch(name); m != nil {
			if n, _ := strconv.Atoi(m[1]); n > 0 && (k == 0 || n < k) {
				k = n
			}
		}
	}
	return k
}

// dearest is the highest believable price of a token in dollars: one above it was meant per million.
const dearest = 0.01

// perToken returns dollars per million tokens of a price per token. A number written as text counts.
func perToken(raw json.RawMessage) (v float64, why string) {
	text := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
	if text == "" || text == "null" {
		return 0, ""
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, "is no number: " + strconv.Quote(text)
	case v < 0:
		return 0, "is negative"
	case v > dearest:
		return 0, fmt.Sprintf("is %s dollars for one token, which is more than %v", text, dearest)
	}
	return math.Round(v*1e12) / 1e6, "" // 1e-07 is 0.1 a million, not 0.09999999999999999
}

// listed takes the prices of the models that nodes name from the list that the spec names. The spec's own
// rows come first, the built-in ones last.
func (b *builder) listed(p *tree.Value) {
	v := p.Get("priceList")
	if v == nil || !b.localPath(v, "priceList") {
		return
	}
	l, err := b.readList(v.Str)
	if err != nil {
		b.fail(v.Pos, "priceList", "%s", err)
		return
	}
	asked := map[string]bool{}
	for _, d := range b.drafts {
		call := d.node.Call
		if d.bad || call == nil || call.Model == "" || asked[call.Model] || p.Get("prices").Get(call.Model) != nil {
			continue
		}
		asked[call.Model] = true
		price, ok, why := l.price(call.Provider, call.Model)
		if why != "" {
			b.warn(v.Pos, "priceList", "%s: the entry of model %q is left out: %s", v.Str, call.Model, why)
		}
		if !ok {
			continue
		}
		b.plan.Prices = slices.DeleteFunc(b.plan.Prices, func(q dag.Price) bool { return q.Model == price.Model })
		b.plan.Prices = append(b.plan.Prices, price)
	}
	slices.SortFunc(b.plan.Prices, func(x, y dag.Price) int { return strings.Compare(x.Model, y.Model) })
}

// mostList is the longest price list, in bytes; the public one has about 1.6 MB.
const mostList = 64 << 20

func (b *builder) readList(name string) (priceList, error) {
	if b.root == nil {
		return priceList{}, errors.New("there are no input files here: " + name)
	}
	f, err := b.open(name)
	if err != nil {
		return priceList{}, errors.New(b.why(name, err))
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, mostList))
	if err != nil {
		return priceList{}, err
	}
	return readPriceList(raw)
}

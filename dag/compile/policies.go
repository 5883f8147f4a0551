package compile

import (
	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// defaultGrace is that of R-4, where neither node nor pipeline says otherwise.
const defaultGrace = dag.Duration(5e9)

// defaultGrowth makes the third attempt's time limit longer, where there is one.
const defaultGrowth = 1.5

// longestEstimate is a hundred years: sums of more do not fit a duration.
const longestEstimate = 3_155_760_000

// A layered value is looked up in the node, then in the pipeline's defaults of its kind, then in
// those of all kinds. Maps are merged field by field.
type layered [3]*tree.Value

func (b *builder) layers(node *tree.Value, kind string) layered {
	return layered{node, b.defaults.Get(kind), b.defaults.Get("*")}
}

// get returns the first that is set.
func (l layered) get(name string) *tree.Value {
	for _, v := range l {
		if x := v.Get(name); x != nil {
			return x
		}
	}
	return nil
}

// under returns the layers of a field that holds a map.
func (l layered) under(name string) layered {
	for i, v := range l {
		l[i] = v.Get(name)
	}
	return l
}

// policies reads how a node is run.
func (b *builder) policies(n *dag.Node, l layered, path string) {
	n.Retry = b.retry(l.under("retry"), path)
	n.Timeout = b.timeout(l.under("timeout"), path)
	n.Breaker, n.Pool = b.named("breaker", l, path), b.named("pool", l, path)
	if f := str(l.get("onFail")); f != "fail" {
		n.OnFail = f
	}
	n.Effect = str(l.get("effect"))
	r, e := l.under("reserve"), l.under("estimate")
	n.Reserve = dag.Amount{USD: b.usd(r.get("usd"), path, "reserve.usd"), Tokens: whole(r.get("tokens"))}
	n.Estimate = dag.Estimate{Seconds: float(e.get("seconds")), USD: b.usd(e.get("usd"), path, "estimate.usd"), Tokens: whole(e.get("tokens"))}
	if v := e.get("seconds"); v != nil && n.Estimate.Seconds > longestEstimate {
		b.fail(v.Pos, path+".estimate.seconds", "want at most %d seconds, which are a hundred years, got %s", int64(longestEstimate), plain(v))
	}
	n.Labels = labels(l.under("labels"))
}

// named returns the name of a breaker or pool that a node names by the field of that name.
func (b *builder) named(what string, l layered, path string) string {
	v := l.get(what)
	if v == nil {
		return ""
	}
	b.checkNames(what, v, tree.Join(path, what))
	return v.Str
}

func (b *builder) retry(l layered, path string) dag.Retry {
	r, on := dag.DefaultRetry, map[string]dag.CategoryPolicy{}
	here := tree.Join(path, "retry")
	for i := len(l) - 1; i >= 0; i-- { // the nearest layer last
		if l[i] == nil {
			continue
		}
		c := b.retryChange(l[i], here)
		r = c.Over(r)
		for _, f := range sortedMap(l[i].Get("on")) {
			here := tree.Join(here+".on", f.Name)
			b.checkNames("category", &tree.Value{Kind: tree.String, Str: f.Name, Pos: f.Pos}, here)
			on[f.Name] = dag.CategoryPolicy{Category: f.Name, Then: str(f.Value.Get("then")), OnFail: str(f.Value.Get("onFail")),
				Retry: b.retryChange(f.Value, here)}
		}
	}
	for _, name := range b.known["category"] {
		if p, ok := on[name]; ok {
			r.On = append(r.On, p)
		}
	}
	return r
}

// retryChange reads what one place says of retries. What is not there stays unsaid: zero is a value.
func (b *builder) retryChange(v *tree.Value, path string) dag.RetryChange {
	c := dag.RetryChange{Attempts: num(v.Get("attempts"))}
	duration := func(name string) *dag.Duration {
		x := v.Get(name)
		if x == nil {
			return nil
		}
		d := b.duration(x, path, name)
		return &d
	}
	number := func(name string) *float64 {
		x := v.Get(name)
		if x == nil {
			return nil
		}
		f := float(x)
		return &f
	}
	c.Base, c.Factor, c.Cap, c.Jitter = duration("base"), number("factor"), duration("cap"), number("jitter")
	if x := v.Get("delays"); x != nil {
		for i, d := range x.Items {
			c.Delays = append(c.Delays, b.duration(d, path, tree.At("delays", i)))
		}
	}
	return c
}

// timeout reads a duration (one attempt) or a map; the nearest layer that names a limit wins.
func (b *builder) timeout(l layered, path string) dag.Timeout {
	t := dag.Timeout{Grace: defaultGrace}
	for i := len(l) - 1; i >= 0; i-- {
		v := l[i]
		switch {
		case v == nil:
		case v.Kind == tree.String:
			t.Attempt = b.limit(v, path, "timeout")
		default:
			set := func(name string, to *dag.Duration) {
				if x := v.Get(name); x != nil {
					*to = b.limit(x, path, "timeout."+name)
				}
			}
			set("attempt", &t.Attempt)
			set("silence", &t.Silence)
			set("grace", &t.Grace)
			set("total", &t.Total)
			if x := v.Get("growth"); x != nil {
				t.Growth = float(x)
			}
		}
	}
	if t.Attempt > 0 && t.Growth == 0 {
		t.Growth = defaultGrowth
	}
	return t
}

// labels merges labels; whole numbers and booleans become their text.
func labels(l layered) map[string]string {
	var out map[string]string
	for i := len(l) - 1; i >= 0; i-- {
		if l[i] == nil {
			continue
		}
		for _, f := range l[i].Fields {
			if out == nil {
				out = make(map[string]string, len(l[i].Fields))
			}
			out[f.Name] = plain(f.Value)
		}
	}
	return out
}

package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/nodes"
)

// models compares the models that answered with the one that was asked for.
func models(s *settings, r *reply, res *nodes.Result) {
	if len(r.ByModel) > 1 {
		fields := map[string]any{}
		for name, usd := range r.ByModel {
			fields[name] = usd
		}
		res.Notes = append(res.Notes, nodes.LogLine{Log: "quality", Type: "cost-by-model", Fields: fields})
	}
	switch {
	case s.Model == "" && len(r.Models) == 1:
		res.Model = r.Models[0]
	case len(s.FallbackModels) > 0: // the node's settings name the first one
		res.Model = s.Model
	}
	asked := slices.ContainsFunc(r.Models, func(m string) bool { return sameModel(s.Model, m) })
	if s.Model == "" || len(r.Models) == 0 || asked {
		return
	}
	res.Model = r.Models[0]
	msg := fmt.Sprintf("model %s was asked for, %s answered", s.Model, strings.Join(r.Models, ", "))
	if s.OnModelSwitch == "fail" && r.Failure == nil {
		r.Failure = nodes.Fail("transient", msg)
		return
	}
	res.Warnings = append(res.Warnings, msg)
}

// sameModel reports whether two names mean one model: dated releases, provider prefixes and
// the short names of families are the same.
func sameModel(asked, got string) bool {
	norm := func(s string) string {
		s = strings.ToLower(s)
		s = s[strings.LastIndexByte(s, '/')+1:]
		s, _, _ = strings.Cut(s, "[")
		s = strings.TrimSuffix(s, "-latest")
		return s
	}
	a, g := norm(asked), norm(got)
	return a == g || a == "default" || release(a, g) || release(g, a) ||
		!strings.Contains(a, "-") && strings.Contains(g, "-"+a+"-")
}

// release reports whether full is name with a date or number of a release behind it: three digits at
// least, for fewer tell another model (claude-opus-5 and claude-opus-5-5).
func release(name, full string) bool {
	rest, ok := strings.CutPrefix(full, name)
	return ok && len(rest) > 3 && (rest[0] == '-' || rest[0] == '@') && strings.Trim(rest[1:], "0123456789-") == ""
}

// answeredBy returns the name of the model that answered.
func answeredBy(s *settings, r *reply) string {
	for _, m := range r.Models {
		if s.Model == "" || sameModel(s.Model, m) {
			return m
		}
	}
	if len(r.Models) > 0 {
		return r.Models[0]
	}
	return cmp.Or(s.Model, "default")
}

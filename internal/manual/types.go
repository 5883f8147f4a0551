package manual

import (
	"strings"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// called are the words for definitions that everybody knows.
var called = map[string]string{
	"Name": "name", "ID": "id", "Duration": "duration such as 90s or 2m30s",
	"Variable": "name of a variable", "Time": "duration above 0 such as 90s or 2m30s", "Template": "text with ${...}",
}

// typeOf says in words what a value may be: "list of paths", "an int from 1 to 100", "Retry {base, factor, ...}".
func typeOf(r *rules.Rule) string {
	switch {
	case r == nil:
		return "any value"
	case called[r.Name] != "":
		return called[r.Name]
	case r.Want != "":
		return strings.TrimPrefix(r.Wanting(), "want ")
	case len(r.AnyOf) > 0:
		var all []string
		for _, a := range r.AnyOf {
			all = append(all, typeOf(a))
		}
		return strings.Join(all, " or ")
	case r.Types == rules.TypesOf(tree.List):
		return "list of " + plural(r.Items)
	case r.Types == rules.TypesOf(tree.Map):
		return mapType(r)
	case len(r.Enum) > 0:
		return strings.TrimPrefix(r.Wanting(), "want ")
	}
	return strings.TrimPrefix(strings.Replace(r.Wanting(), "want string", "want text", 1), "want ")
}

func mapType(r *rules.Rule) string {
	var names []string
	for i, f := range r.Fields {
		if i == 5 {
			names = append(names, "...")
			break
		}
		names = append(names, f.Name)
	}
	switch fields := "{" + strings.Join(names, ", ") + "}"; {
	case len(names) > 0:
		return strings.TrimSpace(r.Name + " " + fields)
	case len(r.Patterns) > 0:
		return "map of names to " + plural(r.Patterns[0].Rule)
	}
	return "map"
}

// plural is the type of each of several values.
func plural(r *rules.Rule) string {
	switch t := typeOf(r); t {
	case "any value":
		return "any values"
	case "text", "name", "id", "list", "map":
		return t + "s"
	case "a relative path":
		return "relative paths"
	default:
		return t
	}
}

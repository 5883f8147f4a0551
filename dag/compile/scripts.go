package compile

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// scripts readies a node in spec form for what fills in templates. A script is none: what it holds is escaped, here and
// nowhere else, so that it comes out as it was written however often the settings around it are filled in. Which values
// are scripts is said by the schema (#Script), for all kinds of node, undo actions and nodes that a run makes. vars are
// the names that expressions know beside their own. v itself stays as it is, for parts of it may stand elsewhere too.
func (b *builder) scripts(v *tree.Value, path string, vars ...string) *tree.Value {
	if !expr.HasTemplate(v) {
		return v
	}
	return b.scriptsIn(v, path, vars)
}

func (b *builder) scriptsIn(v *tree.Value, path string, vars []string) *tree.Value {
	if v.Kind != tree.Map {
		return v
	}
	return v.Edited(func(name string, x *tree.Value) *tree.Value {
		at := tree.Join(path, name)
		switch name {
		case "foreach":
			return b.scriptsIn(x, at, append(slices.Clip(vars), x.Get("as").Text()))
		case "with":
			r := b.s.Settings(v.Get("kind").Text())
			s := settingsWalk{b: b, with: x, vars: vars}
			s.shell = r != nil && r.Field("shell") != nil && forShell(x.Get("shell"))
			return s.value(x, r, at, "")
		}
		return b.scriptsIn(x, at, vars)
	})
}

// A settingsWalk looks for scripts in the settings of one node.
type settingsWalk struct {
	b     *builder
	with  *tree.Value
	vars  []string
	shell bool // its scripts are for a shell
}

// value walks a value with its rule. by is the field that hands values to a script in it.
func (s *settingsWalk) value(v *tree.Value, r *rules.Rule, path, by string) *tree.Value {
	switch {
	case r == nil || !expr.HasTemplate(v):
	case r.Name == "Script" && v.Kind == tree.String:
		s.script(v, path, by)
		out := *v
		out.Str = expr.Escape(v.Str)
		return &out
	case r.Name == "Argv" && v.Kind == tree.List:
		s.argv(v, path)
	default:
		for _, name := range []string{"env", "args"} {
			if r.Field(name) != nil {
				by = name
				break
			}
		}
		return v.Edited(func(label string, x *tree.Value) *tree.Value {
			return s.value(x, r.Below(label), v.PathOf(path, label), by)
		})
	}
	return v
}

// script looks for what was meant as a template. In a script for a shell that is a mistake, because what a shell makes
// of it is seldom noticed; other languages may mean it.
func (s *settingsWalk) script(v *tree.Value, path, by string) {
	seen := map[string]bool{}
	say := func(key, text string) {
		switch {
		case seen[key]:
		case s.shell:
			s.b.fail(v.Pos, path, "%s", text)
		default:
			s.b.warn(v.Pos, path, "%s", text)
		}
		seen[key] = true
	}
	for i := 0; i < len(v.Str); i++ {
		rest, ok := strings.CutPrefix(v.Str[i:], "${")
		if !ok {
			continue
		}
		if s.shell && i > 0 && v.Str[i-1] == '$' {
			say("$${", "$${ is how a template writes ${, and a script is no template: write ${")
			continue
		}
		src, _, _ := strings.Cut(rest, "}")
		src = strings.TrimSpace(src)
		root := identifier.FindString(src)
		member := strings.HasPrefix(src[len(root):], ".") || strings.HasPrefix(src[len(root):], "[")
		switch {
		case s.shell && strings.HasSuffix(v.Str[:i], `\`): // it is text for the shell
		case root == "nodes" && (member || s.shell), root == "params" && (member || s.shell):
			say(src, s.meant(src, by, true))
		case s.shell && (root == "run" || root != "" && slices.Contains(s.vars, root)) && (member || !s.sets(root)):
			say(src, s.meant(src, by, member))
		}
	}
}

var (
	identifier     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*`)
	lastIdentifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*$`)
)

// meant says how a value comes into a script.
func (s *settingsWalk) meant(src, by string, certain bool) string {
	if !s.shell {
		return fmt.Sprintf("${%s} is not filled in: this is a script and no template; where a value of the run is meant, "+
			"hand it over by %s", src, by)
	}
	name := lastIdentifier.FindString(src)
	if name == "" || !certain {
		name = "value"
	}
	text := fmt.Sprintf("${%s} is not filled in: this is a script and no template; hand the value over as a variable, "+
		"%s: {%s: \"${%s}\"}, and write \"$%s\" in the script", src, by, name, src, name)
	if !certain {
		text += "; a variable of the script itself needs another name"
	}
	return text
}

// sets reports whether the settings give the script a variable of that name.
func (s *settingsWalk) sets(name string) bool {
	pass := s.with.Get("pass")
	return s.with.Get("env").Get(name) != nil || s.with.Get("secrets").Get(name) != nil ||
		pass != nil && slices.ContainsFunc(pass.Items, func(v *tree.Value) bool { return v.Str == name })
}

// argv warns of templates in an argument that is a script.
func (s *settingsWalk) argv(v *tree.Value, at string) {
	for i := 1; i < len(v.Items); i++ {
		flag, x := v.Items[i-1].Text(), v.Items[i]
		script := flag == "-c" ||
			shortFlags.MatchString(flag) && strings.HasSuffix(flag, "c") && slices.ContainsFunc(v.Items[:i-1], isShell)
		if !script || x.Kind != tree.String {
			continue
		}
		pieces, err := expr.Split(x.Str)
		for _, p := range pieces {
			if err == nil && p.Source != "" {
				s.b.warn(x.Pos, tree.At(at, i), "the argument behind %s is a script, and the value of ${%s} becomes part of "+
					"it whatever it holds; hand it over as a variable, by env, or as a further argument", flag, p.Source)
				break
			}
		}
	}
}

var shortFlags = regexp.MustCompile(`^-[A-Za-z]+$`)

// forShell reports whether a setting shell names a shell. One that a parameter gives may be one.
func forShell(v *tree.Value) bool {
	return v == nil || v.Kind != tree.List || slices.ContainsFunc(v.Items, isShell)
}

func isShell(v *tree.Value) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"}, path.Base(v.Text()))
}

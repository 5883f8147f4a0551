package proc

import (
	"os"
	"slices"
	"strings"
)

// inherited are the variables that every child gets; nothing else leaks in from the shell
// that dagrun was started from.
var inherited = []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}

// Environ returns the variables of dagrun's own environment that every child gets (HOME, LANG,
// LC_*, LOGNAME, PATH, SHELL, TERM, TMPDIR, TZ, USER), those named in pass, and set, which
// wins. Sorted by name.
func Environ(pass []string, set map[string]string) []string {
	env := make([]string, 0, len(inherited)+len(pass)+len(set)+4)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if _, replaced := set[name]; replaced {
			continue
		}
		if slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_") || slices.Contains(pass, name) {
			env = append(env, kv)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

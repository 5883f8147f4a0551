package proc

import (
	"os"
	"slices"
)

// inherited are the variables that every child gets; nothing else leaks in from the shell
// that dagrun was started from. Those of the locale are all that POSIX and glibc know.
var inherited = []string{
	"HOME", "LANG", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
	"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
	"LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
}

// Environ returns the variables of dagrun's own environment that every child gets (HOME, LANG,
// LC_*, LOGNAME, PATH, SHELL, TERM, TMPDIR, TZ, USER), those named in pass, and set, which
// wins. Sorted by name.
func Environ(pass []string, set map[string]string) []string {
	env := make([]string, 0, 16+len(pass)+len(set))
	add := func(name string) {
		if _, replaced := set[name]; replaced {
			return
		}
		if value, there := os.LookupEnv(name); there {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range inherited {
		add(name)
	}
	for _, name := range pass {
		if !slices.Contains(inherited, name) {
			add(name)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return slices.Compact(env)
}

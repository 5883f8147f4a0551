package proc

import (
	"os"
	"slices"
	"strings"
	"sync"
)

// inherited are the variables that every child gets; nothing else leaks in from the shell
// that dagrun was started from. Those of the locale are all that POSIX and glibc know.
var inherited = []string{
	"HOME", "LANG", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
	"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
	"LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
}

// inheritance is what every child gets of the environment that this process was started with. It is read once, since
// nothing changes it: looking for each name took a hundredth of what a short command costs.
var inheritance = sync.OnceValue(inherit)

func inherit() (list []string) {
	for _, name := range inherited {
		if value, there := os.LookupEnv(name); there {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// Environ returns the variables of dagrun's own environment that every child gets (HOME, LANG,
// LC_*, LOGNAME, PATH, SHELL, TERM, TMPDIR, TZ, USER), those named in pass, and set, which
// wins. Sorted by name.
func Environ(pass []string, set map[string]string) []string {
	base := inheritance()
	env := make([]string, 0, len(base)+len(pass)+len(set))
	for _, entry := range base {
		if _, replaced := set[entry[:strings.IndexByte(entry, '=')]]; !replaced {
			env = append(env, entry)
		}
	}
	for _, name := range pass {
		_, replaced := set[name]
		if value, there := os.LookupEnv(name); there && !replaced {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return slices.Compact(env)
}

package agent

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
)

// account names who is asked, and as whom: the provider, the place it is asked at, and the names of the
// secrets that it is asked with. A quota that is used up, a refused login and an empty account are facts
// about it, not about one node.
func (s *settings) account() string {
	parts := []string{s.Provider}
	if s.Provider == "command" {
		parts = append(parts, s.Argv...)
	}
	if s.BaseURL != "" {
		parts = append(parts, place(s.BaseURL))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		parts = append(parts, name+"="+s.Secrets[name])
	}
	return strings.Join(parts, " ")
}

// place is a URL without what may hold a key.
func place(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return base
	}
	return u.Host + u.Path
}

// advise adds to an error that stops the run, once, what the user has to do.
func advise(s *settings, err error) error {
	var e *nodes.Error
	if !errors.As(err, &e) || e.Category != "auth" && e.Category != "billing" {
		return err
	}
	do := capability.Of(s.Provider).Login
	switch {
	case e.Category == "billing":
		do = "add credit to the account or raise its limit"
	case len(s.Secrets) > 0:
		do = "give a valid value to the secret " + strings.Join(secretNames(s), ", ")
	case do == "" && len(s.Argv) > 0:
		do = "log in with `" + s.Argv[0] + "`"
	case do == "":
		do = "log in, or set the key that the provider reads"
	}
	e.Message = strings.TrimRight(e.Message, ". ") + "; to go on: " + do + ", then `dagrun resume`"
	return err // with what is joined to it
}

func secretNames(s *settings) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		list = append(list, s.Secrets[name])
	}
	return list
}

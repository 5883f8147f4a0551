package agent

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/capability"
)

// advise adds to an error that stops the run, once, what the person has to do.
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

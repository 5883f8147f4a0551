package agent

import (
	"maps"
	"net/url"
	"slices"
	"strings"
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

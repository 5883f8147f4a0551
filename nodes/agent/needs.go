package agent

import (
	"slices"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
	"dagrun.dev/nodes/internal/accept"
)

// Needs are the provider's program and what is put in front of it, or for a service a key. Whether a program is logged
// in is known only by asking it.
func (s *settings) Needs() (list []nodes.Need) {
	p := capability.Of(s.Provider)
	if p.Service {
		if len(s.Secrets) == 0 && s.BaseURL == "" { // a server of one's own may want none
			list = append(list, nodes.SecretNeed(p.Keys...))
		}
		return list
	}
	programs := slices.Clone(s.Wrapper[:min(1, len(s.Wrapper))])
	if s.Provider != "sim" && s.Provider != "" {
		programs = append(programs, s.program(s.Provider)[0])
	}
	for _, name := range programs {
		if n, ok := nodes.ProgramNeed(name, accept.Plain(s.Env["PATH"]), ""); ok {
			list = append(list, n)
		}
	}
	return list
}

package credential

import (
	"slices"
	"strings"
	"testing"

	"dagrun.dev/nodes"
)

// What is handed to a child or a request as a credential is reported to the host, and nothing else is (X7).
func TestCredentialsAreFound(t *testing.T) {
	header := func(name, value string) func(*nodes.Task) {
		return func(t *nodes.Task) { MaskNamed(t, name, value) }
	}
	env := func(pairs ...string) func(*nodes.Task) { return func(t *nodes.Task) { MaskEnv(t, pairs) } }
	address := func(text string) func(*nodes.Task) { return func(t *nodes.Task) { MaskURL(t, text) } }
	for name, c := range map[string]struct {
		look func(*nodes.Task)
		want string
	}{
		"keys of agents": {
			env("ANTHROPIC_API_KEY=sk-ant-1234", "CLAUDE_CODE_OAUTH_TOKEN=oat-12345", "PATH=/usr/bin:/bin", "LANG=C.UTF-8"),
			"oat-12345 sk-ant-1234",
		},
		"no value":                {env("ANTHROPIC_API_KEY=", "OPENAI_API_KEY", "SORT_KEY=name"), ""},
		"a proxy's password":      {env("HTTPS_PROXY=http://me:pass-word-1@proxy.test:3128"), "pass-word-1"},
		"a base address's key":    {env("GOOGLE_GEMINI_BASE_URL=https://h.test/v1?alt=sse-stream&key=AIza-1234"), "AIza-1234"},
		"a user that is a token":  {address("https://glpat-12345@h.test/"), "glpat-12345"},
		"a key written as in URL": {address("https://h.test/?api-version=2026-06-01&api_key=a%20b%2Fcdefgh"), "a b/cdefgh"},
		"no address":              {address("http://[::1"), ""},
		"a bearer token":          {header("authorization", "Bearer abcdefgh-1"), "Bearer abcdefgh-1,abcdefgh-1"},
		"a key's header":          {header("x-goog-api-key", "AIza-1234"), "AIza-1234"},
		"a header without one":    {header("Content-Type", "application/json"), ""},
	} {
		var got []string
		c.look(&nodes.Task{Mask: func(value string) { got = append(got, value) }})
		slices.Sort(got)
		sep := " "
		if strings.Contains(c.want, ",") {
			sep = ","
		}
		if strings.Join(got, sep) != c.want {
			t.Errorf("%s: %q, want %s", name, got, c.want)
		}
		c.look(&nodes.Task{}) // a host without masks
	}
}

package agent

import "testing"

// M8: nodes that would ask the same service as the same user share an account; a key never stands in its name.
func TestAccounts(t *testing.T) {
	for _, c := range []struct{ name, with, want string }{
		{"a CLI", `{"provider":"claude","prompt":{"text":"a"}}`, "claude"},
		{"another model is the same account", `{"provider":"claude","model":"m","prompt":{"text":"b"}}`, "claude"},
		{"another place", `{"provider":"openai","model":"m","baseURL":"https://user:pw@host.example/v1?key=abc","prompt":{"text":"a"}}`, "openai host.example/v1"},
		{"another key", `{"provider":"anthropic","model":"m","secrets":{"ANTHROPIC_API_KEY":"team"},"prompt":{"text":"a"}}`, "anthropic ANTHROPIC_API_KEY=team"},
		{"a program", `{"provider":"command","argv":["sh","ask.sh"],"prompt":{"text":"a"}}`, "command sh ask.sh"},
		{"a place that is not known yet", `{"provider":"openai","model":"m","baseURL":"${params.url}","prompt":{"text":"a"}}`, "openai ${params.url}"},
	} {
		tr, err := Kind.Describe([]byte(c.with))
		if err != nil || tr.Account != c.want {
			t.Errorf("%s: account %q, %v; want %q", c.name, tr.Account, err, c.want)
		}
	}
}

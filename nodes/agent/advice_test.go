package agent

import (
	"errors"
	"io"
	"strings"
	"testing"

	"dagrun.dev/nodes"
)

// What only a person can mend says what the person has to do, provider by provider.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		set            settings
		category, want string
	}{
		{settings{Provider: "claude"}, "auth", "`claude /login` or set ANTHROPIC_API_KEY"},
		{settings{Provider: "codex"}, "auth", "`codex login`"},
		{settings{Provider: "gemini"}, "auth", "GEMINI_API_KEY"},
		{settings{Provider: "anthropic"}, "auth", "set ANTHROPIC_API_KEY"},
		{settings{Provider: "openai"}, "auth", "set OPENAI_API_KEY"},
		{settings{Provider: "openai", Secrets: map[string]string{"OPENAI_API_KEY": "team-key"}}, "auth", "the secret team-key"},
		{settings{Provider: "command", Argv: []string{"my-agent", "-p"}}, "auth", "log in with `my-agent`"},
		{settings{Provider: "sim"}, "auth", "log in, or set the key"},
		{settings{Provider: "claude"}, "billing", "add credit"},
	} {
		err := advise(&c.set, nodes.Fail(c.category, "Not logged in."))
		var e *nodes.Error
		if !errors.As(err, &e) || e.Category != c.category || !strings.HasPrefix(e.Message, "Not logged in; to go on: ") ||
			!strings.Contains(e.Message, c.want) || !strings.HasSuffix(e.Message, ", then `dagrun resume`") {
			t.Errorf("%s %s: %v", c.set.Provider, c.category, err)
		}
	}
	if err := nodes.Fail("transient", "x"); advise(&settings{Provider: "claude"}, err) != error(err) {
		t.Error("advice on what another attempt mends")
	}
	if advise(&settings{}, io.EOF) != io.EOF || advise(&settings{}, nil) != nil {
		t.Error("advice on nothing")
	}
}

package exec

import (
	"encoding/json"
	"strings"
)

// A shell is the setting of that name: "sh", "bash", or an interpreter with its arguments as a list. Empty is sh.
type shell []string

// UnmarshalJSON reads a name or a list.
func (s *shell) UnmarshalJSON(b []byte) error {
	var name string
	if json.Unmarshal(b, &name) == nil {
		*s = shell{name}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(s))
}

// words is the command line that takes a script as its last argument. A script for sh or bash ends at the first command
// that fails, at a variable that is not set and, with bash, at a pipe of which any command fails.
func (s shell) words() []string {
	switch {
	case len(s) == 0 || len(s) == 1 && s[0] == "sh":
		return []string{"/bin/sh", "-eu", "-c"}
	case len(s) == 1 && s[0] == "bash":
		return []string{"bash", "-eu", "-o", "pipefail", "-c"}
	}
	return s
}

func (s shell) String() string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.Join(s.words(), " "), "/bin/"), " -c")
}

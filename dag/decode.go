package dag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrUnknownField is wrapped by errors of DecodeJSON about a name that the Go type does not have.
var ErrUnknownField = json.ErrUnknownName

// strictly is how what this program has written is read: a name that it does not know comes from a newer version.
var strictly = json.JoinOptions(json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(makeRoom)))

// DecodeJSON reads src into v, a pointer to a zero value. It is stricter than encoding/json:
// names are exact, an unknown or a repeated name is an error, and nothing may follow.
func DecodeJSON(src []byte, v any) error {
	err := json.Unmarshal(src, v, strictly)
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return worded(err)
	}
	why := wrong.Err
	if why == nil {
		why = fmt.Errorf("a JSON %s cannot stand here", wrong.JSONKind)
	}
	if path := strings.Join(slices.Collect(wrong.JSONPointer.Tokens()), "."); path != "" {
		why = fmt.Errorf("%s: %w", path, why)
	}
	return why
}

// makeRoom makes room for the nodes of a plan before they are read: there may be many, and growing would copy them
// again and again.
func makeRoom(d *jsontext.Decoder, v *[]Node) error {
	*v = make([]Node, 0, elements(d.UnreadBuffer()))
	return json.SkipFunc
}

// elements counts the elements of the array that src begins with, without reading them; what is not JSON
// may be counted wrong, but never as more than there are commas.
func elements(src []byte) int {
	n, depth, quoted := 0, 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',' && depth == 1:
			n++
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			if depth--; depth <= 0 {
				return n + 1
			}
		}
	}
	return n + 1
}

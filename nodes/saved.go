package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// SavedName is the file in a node's folder that a kind keeps its finished result in when buying
// it again would cost money. A host that finds a complete one of an attempt whose end was never
// recorded uses it instead of calling the attempt lost.
const SavedName = "result.json"

// A saved is a Result that survives its process. Files holds the staged artifacts.
type saved struct {
	Node       string             `json:"node"`
	Generation int                `json:"generation"`
	Attempt    int                `json:"attempt"`
	Result     *Result            `json:"result"`
	Files      map[string]content `json:"files,omitempty"`
}

// A content is written as text where it is one, so that secrets in it are masked like elsewhere and it loads all the
// same.
type content []byte

func (c content) MarshalJSON() ([]byte, error) {
	if utf8.Valid(c) {
		return json.Marshal(string(c))
	}
	return json.Marshal([][]byte{c})
}

func (c *content) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		var coded [1][]byte
		err := json.Unmarshal(raw, &coded)
		*c = coded[0]
		return err
	}
	var text string
	err := json.Unmarshal(raw, &text)
	*c = content(text)
	return err
}

// SaveResult writes a finished result with its staged artifacts. A cut file does not load.
func SaveResult(w io.Writer, t *Task, r *Result) error {
	s := saved{Node: t.Node, Generation: t.Generation, Attempt: t.Attempt, Result: r, Files: map[string]content{}}
	root, err := os.OpenRoot(t.Out)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, path := range r.Writes {
		if s.Files[name], err = root.ReadFile(path); err != nil {
			return fmt.Errorf("save result: %w", err)
		}
	}
	return json.NewEncoder(w).Encode(s)
}

// LoadResult reads what SaveResult wrote for one attempt and stages its artifacts in the folder out.
// It is an error when the file is cut, or belongs to another attempt.
func LoadResult(r io.Reader, node string, generation, attempt int, out string) (*Result, error) {
	var s saved
	d := json.NewDecoder(r)
	d.UseNumber() // whole numbers to the last digit
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("saved result: %w", err)
	}
	if s.Result == nil || s.Node != node || s.Generation != generation || s.Attempt != attempt {
		return nil, errors.New("saved result: it belongs to another attempt")
	}
	root, err := os.OpenRoot(out)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for name, path := range s.Result.Writes {
		content, ok := s.Files[name]
		if !ok {
			return nil, fmt.Errorf("saved result: the content of %s is missing", name)
		}
		if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := root.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}
	return s.Result, nil
}

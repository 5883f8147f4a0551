package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/nodes/internal/accept"
)

// keywords are those of JSON Schema that settings may use. One that is misspelt would check nothing.
type keywords struct {
	Type       any                  `json:"type"`
	Enum       []any                `json:"enum"`
	Properties map[string]*keywords `json:"properties"`
	Required   []string             `json:"required"`
	Additional *bool                `json:"additionalProperties"`
	Items      *keywords            `json:"items"`
	MinItems   int                  `json:"minItems"`
	MinLength  int                  `json:"minLength"`
	MaxLength  *int                 `json:"maxLength"`
	Pattern    string               `json:"pattern"`
	Minimum    *float64             `json:"minimum"`
	Maximum    *float64             `json:"maximum"`
}

func compileSchema(raw json.RawMessage) (*jsonschema.Schema, error) {
	if err := accept.Decode(raw, &keywords{}); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	c := jsonschema.NewCompiler()
	const name = "check.json" // in messages only
	if err := c.AddResource(name, v); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	s, err := c.Compile(name)
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		err = errors.New(departure(invalid.Err))
	}
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return s, nil
}

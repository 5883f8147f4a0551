package yamltree

import (
	"bytes"
	"errors"

	"gopkg.in/yaml.v3"
)

// Blocks lays a JSON value out as YAML in lines, fields in their order. Texts stay in double quotes, so that nothing is
// taken for another type.
func Blocks(json []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(json, &doc); err != nil { // JSON is YAML
		return nil, err
	}
	inBlocks(&doc)
	var text bytes.Buffer
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	err := errors.Join(enc.Encode(&doc), enc.Close())
	return text.Bytes(), err
}

func inBlocks(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle
	for i, c := range n.Content {
		inBlocks(c)
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			c.Style = 0
		}
	}
}

package compile

// Vendor makes dir ready for editors: cue.mod/module.cue where there is none, the built-in
// library under cue.mod/pkg/dagrun.dev (what `cue vet` and the CUE language server read) and the JSON Schema
// for YAML files under cue.mod/pkg/dagrun.dev/pipeline.schema.json. An existing copy is brought
// up to date, files this version no longer has are removed. It returns the paths written,
// relative to dir; calling it twice writes nothing the second time.
func (s *Schema) Vendor(dir string) (written []string, err error) { panic("contract") }

// JSONSchema returns the JSON Schema (draft 2020-12) of specifications in YAML and JSON.
func (s *Schema) JSONSchema() []byte { panic("contract") }

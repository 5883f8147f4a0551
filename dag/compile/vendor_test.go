package compile

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	cueload "cuelang.org/go/cue/load"
	"cuelang.org/go/mod/modfile"
	"cuelang.org/go/mod/module"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
)

// TestVendor (B-13): the library lies where the cue command and its language server look, an
// old copy is refused by name and brought up to date, and nothing is written twice.
func TestVendor(t *testing.T) {
	dir := t.TempDir()
	s := testSchema(t)
	written, err := s.Vendor(dir)
	must(t, err)
	for _, want := range []string{"cue.mod/module.cue", "cue.mod/pkg/dagrun.dev/spec/spec.cue",
		"cue.mod/pkg/dagrun.dev/spec/kinds.cue", "cue.mod/pkg/dagrun.dev/spec/kind_ask.cue", "cue.mod/pkg/dagrun.dev/pipeline.schema.json"} {
		if !slices.Contains(written, filepath.FromSlash(want)) {
			t.Errorf("%s is not written: %v", want, written)
		}
	}
	if again, err := s.Vendor(dir); err != nil || len(again) > 0 {
		t.Errorf("a second time: %v, %v", again, err)
	}
	sub := filepath.Join(dir, "specs", "deep")
	spec := "package p\n\nimport \"dagrun.dev/spec\"\n\npipeline: spec.#Pipeline & {name: \"demo\"}\n"
	must(t, writeFile(filepath.Join(sub, "p.cue"), []byte(spec)))
	reload := func() error {
		_, _, err := load(s, filepath.Join(sub, "p.cue"), source.Options{})
		return err
	}
	must(t, reload())

	edited := filepath.Join(dir, "cue.mod", "pkg", "dagrun.dev", "spec", "spec.cue")
	must(t, os.WriteFile(edited, []byte("package spec\n\n#Pipeline: {...}\n"), 0o644))
	old := filepath.Join(filepath.Dir(edited), "kind_gone.cue")
	must(t, os.WriteFile(old, []byte("package spec\n"), 0o644))
	if err := reload(); err == nil || !strings.Contains(err.Error(), "kind_gone.cue is not what this dagrun has built in; run `dagrun init --update`") {
		t.Errorf("an old copy: %v", err)
	}
	written, err = s.Vendor(sub)
	must(t, err)
	if len(written) != 2 {
		t.Errorf("brought up to date: %v", written)
	}
	must(t, reload())
}

// TestVendoredVet (B-13): what cue vet sees, the loader alone with the vendored files on disk,
// is the whole schema: good specifications pass and mistakes do not.
func TestVendoredVet(t *testing.T) {
	dir := t.TempDir()
	_, err := testSchema(t).Vendor(dir)
	must(t, err)
	const spec = "package p\n\nimport \"dagrun.dev/spec\"\n\npipeline: spec.#Pipeline & {name: \"demo\", nodes: a: {kind: \"exec\", with: run: \"x\"}}\n"
	for text, good := range map[string]bool{
		spec:                                         true,
		strings.Replace(spec, "run:", "rum:", 1):     false,
		strings.Replace(spec, "exec", "exce", 1):     false,
		strings.Replace(spec, "kind:", "knid:", 1):   false,
		strings.Replace(spec, "\"x\"", "3", 1):       false,
		strings.Replace(spec, "\"demo\"", "\"\"", 1): false,
	} {
		must(t, writeFile(filepath.Join(dir, "p.cue"), []byte(text)))
		in := cueload.Instances([]string{"."}, &cueload.Config{Dir: dir, Env: []string{}, Registry: nowhere{}})[0]
		var err error
		if in.Err != nil {
			err = in.Err
		} else {
			err = cuecontext.New(cuecontext.CUE_DEBUG("")).BuildInstance(in).Validate(cue.Concrete(true))
		}
		if (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOffline: a specification gets the library as a vendored copy, as a dependency of its
// module or out of nothing, and no other module from anywhere; the environment changes nothing.
func TestOffline(t *testing.T) {
	t.Setenv("CUE_REGISTRY", "registry.invalid")
	t.Setenv("CUE_DEBUG", "opendef=1")
	t.Setenv("CUE_CACHE_DIR", t.TempDir())
	spec := "package p\n\nimport \"dagrun.dev/spec\"\n\npipeline: spec.#Pipeline & {name: \"demo\"}\n"
	const module = "module: \"example.com/m@v0\"\nlanguage: version: \"v0.14.0\"\n"
	s := testSchema(t)
	for _, c := range []struct{ name, module, spec, want string }{
		{"no module", "", spec, ""},
		{"module", module, spec, ""},
		{"dependency", module + "deps: \"dagrun.dev@v0\": v: \"v0.0.1\"\n", spec, ""},
		{"foreign dependency", module + "deps: \"example.com/other@v0\": v: \"v0.0.1\"\n",
			strings.Replace(spec, "import", "import \"example.com/other\"\nimport", 1), "no package \"example.com/other\""},
		{"unknown field", "", strings.Replace(spec, "{name", "{nmae: 1, name", 1), "nmae: unknown field; did you mean \"name\"?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.module != "" {
				must(t, writeFile(filepath.Join(dir, "cue.mod", "module.cue"), []byte(c.module)))
			}
			must(t, writeFile(filepath.Join(dir, "sub", "p.cue"), []byte(c.spec)))
			_, _, err := load(s, filepath.Join(dir, "sub"), source.Options{})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestJSONSchemaFile (B-13): the published JSON Schema is that of the built-in kinds.
func TestJSONSchemaFile(t *testing.T) {
	s, err := schema.For(builtinSchemas(t))
	must(t, err)
	const path = "../../schemas/pipeline.schema.json"
	if *update {
		must(t, os.WriteFile(path, editorSchema(s), 0o644))
	}
	have, err := os.ReadFile(path)
	must(t, err)
	if string(have) != string(editorSchema(s)) {
		t.Errorf("%s is not what the schema gives; renew it with: go test ./dag/compile -run JSONSchemaFile -update", path)
	}
	jsonSchema(t, s) // it compiles
}

// nowhere is a registry without modules.
type nowhere struct{}

func (nowhere) ModFile(context.Context, module.Version) (*modfile.File, error) {
	return nil, fs.ErrNotExist
}
func (nowhere) Fetch(context.Context, module.Version) (module.SourceLoc, error) {
	return module.SourceLoc{}, fs.ErrNotExist
}
func (nowhere) ModuleVersions(context.Context, string) ([]string, error) { return nil, fs.ErrNotExist }

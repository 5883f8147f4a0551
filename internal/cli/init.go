package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/examples"
	"dagrun.dev/nodes/all"
)

// editorLine makes editors check a specification in YAML, and complete its names.
const editorLine = "# yaml-language-server: $schema=cue.mod/pkg/dagrun.dev/pipeline.schema.json\n"

func makeInit(c *cobra.Command) {
	var update, list bool
	var template string
	c.RunE = func(c *cobra.Command, args []string) error {
		if list {
			return show(c, templateList{examples.Templates()})
		}
		t, err := templateNamed(cmp.Or(template, "hello"))
		if err != nil {
			return err
		}
		dir := "."
		if len(args) > 0 {
			dir = args[0]
		}
		format, err := schema.For(all.Registry())
		if err != nil {
			return err
		}
		if fi, err := os.Stat(dir); err == nil && !fi.IsDir() {
			return fmt.Errorf("%s is a file: name a directory; it is created if it does not exist", dir)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		var names []string
		if !update {
			if names, err = writeFirst(dir, t, template != ""); err != nil {
				return err
			}
		}
		vendored, err := format.Vendor(dir)
		if err != nil {
			return err
		}
		return show(c, written{slices.Concat([]string{}, names, vendored), names, len(vendored), dir})
	}
	c.Flags().BoolVar(&update, "update", false, "update the library and the schema, write no first specification")
	c.Flags().StringVar(&template, "template", "", "begin with the pipeline of this name (see --list)")
	c.Flags().BoolVar(&list, "list", false, "list the templates")
}

func templateNamed(name string) (examples.Template, error) {
	var known []string
	for _, t := range examples.Templates() {
		if known = append(known, t.Name); t.Name == name {
			return t, nil
		}
	}
	return examples.Template{}, unknownName("template", name, known)
}

// writeFirst writes the files of a template. Where the folder has a specification it writes nothing, which is a
// mistake for a template that was asked for.
func writeFirst(dir string, t examples.Template, asked bool) (written []string, err error) {
	for _, pattern := range []string{"*.cue", "spec.yaml", "spec.yml", "spec.json"} {
		found, err := fs.Glob(os.DirFS(dir), pattern)
		if err == nil && len(found) > 0 && asked {
			err = fmt.Errorf("%s is there already: name another directory, dagrun init --template %s DIR",
				filepath.Join(dir, found[0]), t.Name)
		}
		if err != nil || len(found) > 0 {
			return nil, err
		}
	}
	files, err := t.Files()
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil, fmt.Errorf("%s is there already: name another directory", filepath.Join(dir, name))
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return written, err
		}
		content := files[name]
		if name == "spec.yaml" {
			content = append([]byte(editorLine), content...)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			_, err = f.Write(content)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return written, err
		}
		written = append(written, name)
	}
	return written, nil
}

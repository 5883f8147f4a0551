package run

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/state"
)

var update = flag.Bool("update", false, "renew the published JSON Schemas")

const schemaDir = "../../schemas/"

// S-2: the published JSON Schemas of events, snapshot and document are those of the types that are written.
func TestPublishedSchemas(t *testing.T) {
	for name, schema := range map[string]map[string]any{"event.schema.json": eventSchema(t),
		"snapshot.schema.json": snapshotSchema(t), "state.schema.json": stateSchema(t)} {
		got, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		if *update {
			if err := os.WriteFile(schemaDir+name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(schemaDir + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("schemas/%s is not up to date (go test ./dag/run -run Schemas -update): %v", name, err)
		}
	}
}

// S-2, V-1: what is written validates against the published schemas, every line of every recorded log, and a snapshot
// and a document with something of everything.
func TestWhatIsWrittenValidates(t *testing.T) {
	event, snapshot, document := compiled(t, "event.schema.json"), compiled(t, "snapshot.schema.json"), compiled(t, "state.schema.json")
	logs, _ := filepath.Glob(recordedLogs + "/v*/*/events.ndjson")
	if len(logs) == 0 {
		t.Fatal("no recorded logs")
	}
	for _, log := range logs {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
			validate(t, event, line, fmt.Sprintf("%s line %d", log, i+1))
		}
		out := t.TempDir()
		if err := os.CopyFS(out+"/"+Dir, os.DirFS(filepath.Dir(log))); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Replay(Options{Dir: out, Now: start0}, true); err != nil {
			t.Fatal(err)
		}
		if b, err = os.ReadFile(out + "/" + Dir + "/snapshot.json"); err != nil {
			t.Fatal(err)
		}
		validate(t, snapshot, b, log)
		if b, err = os.ReadFile(out + "/" + Dir + "/state.json"); err != nil {
			t.Fatal(err)
		}
		validate(t, document, b, log)
	}
	m, _ := undisturbed(t)
	validate(t, snapshot, []byte(text(t, m.FS(), Dir+"/snapshot.json")), "pages")
	validate(t, document, []byte(text(t, m.FS(), Dir+"/state.json")), "pages")
	var line map[string]any
	if err := json.Unmarshal([]byte(strings.Split(text(t, m.FS(), Dir+"/events.ndjson"), "\n")[2]), &line); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(){
		"a field more":      func() { line["x"] = 1 },
		"a payload's field": func() { delete(line, "x"); line["payload"].(map[string]any)["node"] = 3 },
		"a payload's name":  func() { line["payload"] = map[string]any{"nodes": "b1"} },
	} {
		spoil()
		if event.Validate(line) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaDir + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte, what string) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// A describer turns Go types into JSON Schemas, with the fields' comments as descriptions.
type describer struct {
	comments map[string]string // "package.Type" and "package.Type.Field"
	defs     map[string]any
}

func newDescriber(t *testing.T, more ...string) *describer {
	t.Helper()
	d := &describer{map[string]string{}, map[string]any{}}
	dirs := []string{"..", "../machine", "../artifact/index", "../eventlog/chain", "../eventlog", "."}
	for _, dir := range append(dirs, more...) {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			d.gather(f)
		}
	}
	return d
}

func (d *describer) gather(f *ast.File) {
	for _, decl := range f.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok || ts.Assign.IsValid() { // an alias is described where it points to
				continue
			}
			d.comments[f.Name.Name+"."+ts.Name.Name] = plain(g.Doc)
			st, ok := ts.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range st.Fields.List {
				for _, n := range field.Names {
					if c := plain(field.Doc) + plain(field.Comment); c != "" {
						d.comments[f.Name.Name+"."+ts.Name.Name+"."+n.Name] = c
					}
				}
			}
		}
	}
}

func plain(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	var p comment.Parser
	pr := comment.Printer{TextWidth: -1}
	return strings.TrimSpace(string(pr.Text(p.Parse(c.Text()))))
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	usdType      = reflect.TypeFor[dag.USD]()
	durationType = reflect.TypeFor[dag.Duration]()
)

func (d *describer) of(t reflect.Type) map[string]any {
	switch t {
	case timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case rawType:
		return map[string]any{}
	case usdType:
		return map[string]any{"type": "number", "description": "US dollars"}
	case durationType:
		return map[string]any{"type": "string", "description": "a duration such as 1m30s"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": d.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		d.define(t)
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	}
	return map[string]any{"type": "integer"}
}

func (d *describer) define(t reflect.Type) {
	if d.defs[t.Name()] != nil {
		return
	}
	d.defs[t.Name()] = true // against recursion
	props, required := map[string]any{}, []string{}
	d.fields(t, props, &required)
	def := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		def["required"] = required
	}
	if c := d.comments[t.String()]; c != "" {
		def["description"] = c
	}
	d.defs[t.Name()] = def
}

func (d *describer) fields(t reflect.Type, props map[string]any, required *[]string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			d.fields(f.Type, props, required)
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		s := d.of(f.Type)
		if c := d.comments[t.String()+"."+f.Name]; c != "" {
			s["description"] = c
		}
		props[name] = s
		if !strings.Contains(opts, "omitempty") && !strings.Contains(opts, "omitzero") {
			*required = append(*required, name)
		}
	}
}

func hexHash(description string) map[string]any {
	return map[string]any{"type": "string", "pattern": "^[0-9a-f]{64}$", "description": description}
}

func eventSchema(t *testing.T) map[string]any {
	d := newDescriber(t)
	shapes := machine.Shapes()
	var types []string
	var rules []any
	for _, typ := range machine.Types() {
		types = append(types, string(typ))
		rules = append(rules, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"type": map[string]any{"const": typ}}},
			"then": map[string]any{"properties": map[string]any{"payload": d.of(reflect.TypeOf(shapes[string(typ)]))}},
		})
	}
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://dagrun.dev/event.schema.json",
		"title":       "One line of events.ndjson",
		"description": "A line is the canonical JSON (RFC 8785) of this object. event_hash = sha256(event_id + ts + type + payload + prev_hash), the payload as it stands in the line; see package dag/eventlog.",
		"type":        "object", "additionalProperties": false,
		"required": []string{"event_id", "run_id", "ts", "type", "payload", "trace_id", "span_id", "prev_hash", "event_hash"},
		"properties": map[string]any{
			"event_id":       map[string]any{"type": "string", "pattern": "^e[0-9]{10,}$", "description": "e and the number of the line"},
			"run_id":         map[string]any{"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
			"ts":             map[string]any{"type": "string", "format": "date-time", "pattern": `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$`},
			"type":           map[string]any{"enum": types},
			"payload":        map[string]any{"type": "object"},
			"trace_id":       map[string]any{"type": "string", "pattern": "^[0-9a-f]{32}$"},
			"span_id":        map[string]any{"type": "string", "pattern": "^[0-9a-f]{16}$"},
			"parent_span_id": map[string]any{"type": "string", "pattern": "^[0-9a-f]{16}$"},
			"prev_hash":      hexHash("event_hash of the line before; 64 zeros in the first"),
			"event_hash":     hexHash("of this event"),
		},
		"allOf": rules,
		"$defs": d.defs,
	}
}

func snapshotSchema(t *testing.T) map[string]any {
	d := newDescriber(t, "../state")
	root := reflect.TypeFor[eventlog.Snapshot]()
	d.define(root)
	s := d.defs[root.Name()].(map[string]any)
	delete(d.defs, root.Name())
	props := s["properties"].(map[string]any)
	props["index"] = d.of(reflect.TypeFor[[]*index.Artifact]())
	props["records"] = d.of(reflect.TypeFor[state.Told]())
	props["state"] = d.of(reflect.TypeOf(machine.Shapes()["snapshot"]))
	props["sha256"], props["plan_sha256"] = hexHash("of the file with these digits as zeros"), hexHash("of the adopted plan")
	s["$schema"], s["$id"] = "https://json-schema.org/draft/2020-12/schema", "https://dagrun.dev/snapshot.schema.json"
	s["title"], s["$defs"] = "snapshot.json", d.defs
	return s
}

func stateSchema(t *testing.T) map[string]any {
	d := newDescriber(t, "../state")
	root := reflect.TypeFor[state.Document]()
	d.define(root)
	s := d.defs[root.Name()].(map[string]any)
	delete(d.defs, root.Name())
	d.of(reflect.TypeFor[state.Share]())
	declared := func(what any, description string) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": what, "description": description}
	}
	d.defs["Cost"].(map[string]any)["additionalProperties"] = declared(map[string]any{"$ref": "#/$defs/Share"},
		"sums by the values of a label that the pipeline declares")
	record := maps.Clone(d.defs["Record"].(map[string]any))
	record["additionalProperties"] = true // labels and fields that the pipeline declares
	d.defs["DeclaredRecord"] = record
	s["additionalProperties"] = map[string]any{
		"description": "what the pipeline declares: a fact, or records by the values of a label",
		"anyOf": []any{
			map[string]any{"type": []string{"boolean", "number", "string", "array"}},
			declared(map[string]any{"$ref": "#/$defs/DeclaredRecord"}, "records"),
		},
	}
	props := s["properties"].(map[string]any)
	props["schemaVersion"], props["configHash"] = map[string]any{"const": state.Version}, hexHash("of the plan in force")
	s["$schema"], s["$id"] = "https://json-schema.org/draft/2020-12/schema", "https://dagrun.dev/state.schema.json"
	s["title"], s["$defs"] = "state.json", d.defs
	return s
}

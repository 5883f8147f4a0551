// Package yamltree reads YAML into a tree with places, within limits. It is the only importer
// of the YAML parser, which it uses for syntax alone: what values mean is decided here.
//
// It knows nothing of specifications. One document in UTF-8; keys are strings and unique;
// plain scalars are read as YAML 1.2 does, except that what readers disagree about (leading
// zeros, numbers that do not fit, custom tags) is refused. Merge keys work, within the limit for
// aliases.
package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"dagrun.dev/internal/number"
	"dagrun.dev/internal/tree"
)

// Parse reads one document. The error is a tree.Diagnostics with every mistake; warnings are
// about what is valid but probably meant otherwise. Arbitrary input never panics and never
// makes more than lim allows.
func Parse(file string, data []byte, lim tree.Limits) (v *tree.Value, warnings tree.Diagnostics, err error) {
	w := &walker{file: tree.FileOf(file), lim: lim}
	if d := w.unreadable(data); d != nil {
		return nil, nil, tree.Diagnostics{*d}
	}
	root, d := parse(w.file, data)
	if d != nil {
		return nil, nil, tree.Diagnostics{*d}
	}
	v = w.value(root)
	if len(w.found) > 0 {
		return nil, nil, w.found
	}
	return v, w.warnings, nil
}

// diagnostic is a mistake at a place of a file; 0 is unknown.
func diagnostic(file tree.File, line, col int, format string, args ...any) *tree.Diagnostic {
	pos := tree.Pos{File: file, Line: int32(line), Col: int32(col)}
	return &tree.Diagnostic{Pos: pos, Text: fmt.Sprintf(format, args...)}
}

// unreadable refuses what is too large, or no UTF-8 text, before the parser sees it.
func (w *walker) unreadable(data []byte) *tree.Diagnostic {
	switch {
	case w.lim.Bytes > 0 && int64(len(data)) > w.lim.Bytes:
		return diagnostic(w.file, 0, 0, "the file has more than %d bytes", w.lim.Bytes)
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return diagnostic(w.file, 0, 0, tree.UTF16)
	}
	if bad := notText(data); bad >= 0 {
		line := 1 + bytes.Count(data[:bad], []byte("\n"))
		col := 1 + utf8.RuneCount(data[1+bytes.LastIndexByte(data[:bad], '\n'):bad])
		return diagnostic(w.file, line, col, "not a text file: byte %#02x is not UTF-8 text", data[bad])
	}
	if w.lim.Values > 0 && separators(data) > w.lim.Values {
		return diagnostic(w.file, 0, 0, "the file has more than about %d values", w.lim.Values)
	}
	return nil
}

// separators counts what stands between values. The parser makes a node of some 200 bytes for
// every value before anything can count them, so that a few megabytes of commas would be
// gigabytes of memory.
func separators(data []byte) int {
	n := 0
	for _, c := range []string{",", "\n", ":", "[", "{"} {
		n += bytes.Count(data, []byte(c))
	}
	return n
}

// notText returns the offset of the first byte that is no UTF-8 text, or -1.
func notText(data []byte) int {
	if bad := bytes.IndexByte(data, 0); bad >= 0 || utf8.Valid(data) {
		return bad
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
}

// parse returns the root node of the only document.
func parse(file tree.File, data []byte) (*yaml.Node, *tree.Diagnostic) {
	data = versioned(data)
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := decode(dec, &doc); {
	case errors.Is(err, io.EOF):
		return nil, diagnostic(file, 0, 0, "the file is empty (or holds only comments)")
	case err != nil:
		return nil, syntax(file, data, err)
	}
	switch err := decode(dec, &second); {
	case err == nil:
		return nil, diagnostic(file, second.Line, second.Column, "a second document starts here; a file holds one")
	case !errors.Is(err, io.EOF):
		return nil, syntax(file, data, err)
	}
	return doc.Content[0], nil
}

// decode turns a panic of the parser into an error: small inputs are known to cause one.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: cannot be read: %v", r)
		}
	}()
	if err := dec.Decode(n); err != nil {
		return err
	}
	if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
		return io.EOF
	}
	return nil
}

// A walker turns nodes into values. It counts what it makes, not what the file holds: aliases
// multiply.
type walker struct {
	file     tree.File
	lim      tree.Limits
	path     string
	depth    int
	values   int
	aliased  int          // values made below an alias or merge
	inAlias  int          // aliases being followed
	open     []*yaml.Node // anchored nodes being read, to find those that contain themselves
	stop     bool         // a limit is passed: nothing more is read
	found    tree.Diagnostics
	warnings tree.Diagnostics
}

func (w *walker) pos(n *yaml.Node) tree.Pos {
	return tree.Pos{File: w.file, Line: int32(n.Line), Col: int32(n.Column)}
}

func (w *walker) fail(n *yaml.Node, format string, args ...any) *tree.Value {
	w.found = append(w.found, tree.Diagnostic{Pos: w.pos(n), Path: w.path, Text: fmt.Sprintf(format, args...)})
	return &tree.Value{Pos: w.pos(n)}
}

func (w *walker) limit(n *yaml.Node, format string, args ...any) *tree.Value {
	w.stop = true
	return w.fail(n, format, args...)
}

// value reads any node.
func (w *walker) value(n *yaml.Node) *tree.Value {
	if w.stop {
		return &tree.Value{}
	}
	w.values++
	if w.inAlias > 0 {
		w.aliased++
	}
	switch {
	case w.lim.Values > 0 && w.values > w.lim.Values:
		return w.limit(n, "the file has more than %d values", w.lim.Values)
	case w.lim.Aliases > 0 && w.aliased > w.lim.Aliases:
		return w.limit(n, "aliases and merge keys make more than %d values", w.lim.Aliases)
	case w.lim.Depth > 0 && w.depth > w.lim.Depth:
		return w.limit(n, "nested deeper than %d levels", w.lim.Depth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.alias(n)
	case yaml.ScalarNode:
		return w.scalar(n)
	}
	if n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!map" && n.ShortTag() != "!!seq" {
		return w.fail(n, "tag %s is not supported", n.Tag)
	}
	if n.Anchor != "" {
		w.open = append(w.open, n)
		defer func() { w.open = w.open[:len(w.open)-1] }()
	}
	w.depth++
	defer func() { w.depth-- }()
	if n.Kind == yaml.SequenceNode {
		return w.list(n)
	}
	return w.mapping(n)
}

func (w *walker) alias(n *yaml.Node) *tree.Value {
	if slices.Contains(w.open, n.Alias) {
		return w.fail(n, "anchor %q contains itself", n.Value)
	}
	w.inAlias++
	v := w.value(n.Alias)
	w.inAlias--
	return v
}

func (w *walker) list(n *yaml.Node) *tree.Value {
	v := &tree.Value{Kind: tree.List, Pos: w.pos(n), Items: make([]*tree.Value, 0, len(n.Content))}
	path := w.path
	for i, c := range n.Content {
		if w.stop {
			break
		}
		w.path = tree.At(path, i)
		v.Items = append(v.Items, w.value(c))
		w.done(n.Content[i : i+1])
	}
	w.path = path
	return v
}

func (w *walker) mapping(n *yaml.Node) *tree.Value {
	v := &tree.Value{Kind: tree.Map, Pos: w.pos(n), Fields: make([]tree.Field, 0, len(n.Content)/2)}
	path := w.path
	first := make(map[string]tree.Pos, len(n.Content)/2)
	var merge, from *yaml.Node // the key << and what it has
	for i := 0; i+1 < len(n.Content) && !w.stop; i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		w.path = path
		if isMerge(k) {
			if merge != nil {
				w.fail(k, "duplicate key <<; first set at %s; one << may have a list of maps", w.pos(merge))
			} else {
				merge = k
				from = c
			}
			continue
		}
		name, ok := w.key(k)
		if !ok {
			continue
		}
		w.path = tree.Join(path, name)
		if at, dup := first[name]; dup {
			w.fail(k, "duplicate key; first set at %s", at)
			continue
		}
		first[name] = w.pos(k)
		v.Fields = append(v.Fields, tree.Field{Name: name, Pos: w.pos(k), Value: w.value(c)})
		w.done(n.Content[i : i+2])
	}
	w.path = path
	if merge != nil {
		w.merge(v, first, from)
	}
	return v
}

// done frees nodes that are read, which take more memory than their values. Those of an anchor
// may be read again; an alias holds its anchor itself.
func (w *walker) done(nodes []*yaml.Node) {
	if len(w.open) == 0 {
		clear(nodes)
	}
}

// key reads the key of a map.
func (w *walker) key(k *yaml.Node) (string, bool) {
	if k.Kind == yaml.AliasNode && k.Alias.Kind == yaml.ScalarNode {
		k = k.Alias
	}
	switch {
	case k.Kind != yaml.ScalarNode:
		text := "a key must be plain text"
		if k.Style&yaml.FlowStyle != 0 {
			text += "; put text with {{ }} in quotes"
		}
		w.fail(k, "%s", text)
	case k.ShortTag() == "!!str" || k.ShortTag() == "!!timestamp":
		return k.Value, true
	case k.ShortTag() == "!!null":
		w.fail(k, "the key is empty")
	default:
		w.fail(k, "the key %s reads as %s; put it in quotes", k.Value, strings.TrimPrefix(k.ShortTag(), "!!"))
	}
	return "", false
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

// merge adds the fields of a map, or of each map of a list, that v does not have.
func (w *walker) merge(v *tree.Value, has map[string]tree.Pos, n *yaml.Node) {
	before := len(w.found)
	w.inAlias++
	from := w.value(n)
	w.inAlias--
	if len(w.found) > before {
		return
	}
	maps := []*tree.Value{from}
	if from.Kind == tree.List {
		maps = from.Items
	}
	for _, m := range maps {
		if m.Kind != tree.Map {
			w.fail(n, "a merge key wants a map or a list of maps")
			return
		}
		for _, f := range m.Fields {
			if _, have := has[f.Name]; !have {
				has[f.Name] = f.Pos
				v.Fields = append(v.Fields, f)
			}
		}
	}
}

var (
	wholeNumber = regexp.MustCompile(`^[-+]?[0-9][0-9_]*$`)
	zeroFirst   = regexp.MustCompile(`^[-+]?0[0-9_]+$`)
)

const outOfRange = "%s is out of the range of numbers; put it in quotes if it is text"

func (w *walker) scalar(n *yaml.Node) *tree.Value {
	v := &tree.Value{Pos: w.pos(n)}
	tag := n.ShortTag()
	if plain(n) && zeroFirst.MatchString(n.Value) {
		return w.fail(n, "%s starts with 0, which readers of YAML take for different numbers; put it in quotes", n.Value)
	}
	switch tag {
	case "!!null":
		v.Kind = tree.Null
	case "!!bool":
		v.Kind, v.Bool = tree.Bool, strings.EqualFold(n.Value, "true")
	case "!!int":
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
		if err != nil {
			return w.fail(n, "%s does not fit 64 bits", n.Value)
		}
		v.Kind, v.Int = tree.Int, i
		v.Written(n.Value)
	case "!!float":
		if wholeNumber.MatchString(n.Value) {
			return w.fail(n, "%s does not fit 64 bits", n.Value)
		}
		f, ok := number.Float(strings.ReplaceAll(n.Value, "_", ""))
		if !ok {
			return w.fail(n, outOfRange, n.Value)
		}
		v.Kind, v.Float = tree.Float, f
		v.Written(n.Value)
	case "!!str", "!!timestamp":
		if _, err := strconv.ParseFloat(n.Value, 64); errors.Is(err, strconv.ErrRange) && plain(n) {
			return w.fail(n, outOfRange, n.Value)
		}
		v.Kind, v.Str = tree.String, n.Value
		w.doubt(n)
	case "!!merge":
		v.Kind, v.Str = tree.String, n.Value
	default:
		return w.fail(n, "tag %s is not supported", n.Tag)
	}
	return v
}

func plain(n *yaml.Node) bool {
	return n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
}

// doubt warns of text cut off by a comment: `label: a #b` is "a".
func (w *walker) doubt(n *yaml.Node) {
	c := n.LineComment
	if plain(n) && len(c) > 1 && c[0] == '#' && c[1] != ' ' && c[1] != '\t' && c[1] != '#' {
		w.warnings = append(w.warnings, tree.Diagnostic{Pos: w.pos(n), Path: w.path,
			Text: fmt.Sprintf("the text ends before %q, which is a comment; put it all in quotes if that belongs to it", c)})
	}
}

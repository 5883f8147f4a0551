package manual

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
)

const generated = "<!-- Generated from the schemas by `make docs`: change the comments there. -->\n\n"

// pages are those of docs/reference by their file names. The program itself shows one entry at a time.
func (m *Manual) pages() map[string]string {
	return map[string]string{
		"pipeline.md":    m.pipelinePage(),
		"expressions.md": m.expressionsPage(),
		"failures.md":    m.failuresPage(),
		"kinds.md":       m.kindsPage(),
	}
}

func (m *Manual) kindsPage() string {
	var b strings.Builder
	b.WriteString(generated + "# Kinds of node\n\nThe settings of a kind stand under `with`; what every node has " +
		"beside it is a [node](pipeline.md#node). `dagrun explain exec.exit` prints one of them.\n\n")
	for _, k := range m.s.Kinds {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", k, k, prose(sentence(m.s.Settings(k).Doc)))
	}
	for _, k := range m.s.Kinds {
		m.section(&b, "## ", k, m.s.Settings(k))
		for _, d := range m.s.Definitions() {
			if r := m.s.Rule(d); d != title(k) && strings.HasPrefix(d, title(k)) && len(allFields(r)) > 0 {
				m.section(&b, "### ", d, r)
			}
		}
	}
	return b.String()
}

func (m *Manual) pipelinePage() string {
	var b strings.Builder
	b.WriteString(generated + "# Pipeline and nodes\n\nWhat may stand in a specification, in CUE, YAML or JSON. " +
		"`dagrun explain pipeline.budget` prints one field.\n")
	names := []string{"Pipeline", "Node"}
	for _, d := range m.s.Definitions() {
		if !isHelper(d, m.s.Kinds) && !slices.Contains(names, d) && len(allFields(m.s.Rule(d))) > 0 {
			names = append(names, d)
		}
	}
	for _, d := range names {
		m.section(&b, "## ", d, m.s.Rule(d))
	}
	return b.String()
}

// section is a definition with its fields.
func (m *Manual) section(b *strings.Builder, level, name string, r *rules.Rule) {
	doc, example := split(r.Doc)
	fmt.Fprintf(b, "\n%s%s\n\n", level, name)
	if doc != "" {
		b.WriteString(paragraphs(doc) + "\n\n")
	}
	if example != "" {
		b.WriteString("```yaml\n" + example + "\n```\n\n")
	}
	if fields := allFields(r); len(fields) > 0 {
		b.WriteString("| field | type | |\n|---|---|---|\n")
		for _, f := range fields {
			m.row(b, name, f)
		}
	}
}

func (m *Manual) row(b *strings.Builder, owner string, f member) {
	doc, example := split(f.Doc)
	e := m.field(owner, f)
	if doc == "" {
		doc = sentence(e.Doc)
	}
	about := prose(strings.Join(strings.Fields(doc), " "))
	if e.Default != "" {
		about += fmt.Sprintf(" Default: `%s`.", e.Default)
	}
	if example != "" && !strings.Contains(example, "\n") {
		about += fmt.Sprintf(" Example: `%s`", example)
	}
	if e.Required {
		about = "**Must be there.** " + about
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Name, m.linked(f, e.Type), cell(strings.TrimSpace(about)))
}

// linked is a type with a link to the definition that it names.
func (m *Manual) linked(f member, typ string) string {
	if f.By != "" {
		return "[settings of the kind](kinds.md)"
	}
	text := cell(prose(typ))
	name := named(f.Rule).Name
	if r := m.s.Rule(name); r == nil || len(allFields(r)) == 0 {
		return text
	}
	page := "pipeline.md"
	if isHelper(name, m.s.Kinds) {
		page = "kinds.md"
	}
	link := fmt.Sprintf("[%s](%s#%s)", name, page, strings.ToLower(name))
	if strings.Contains(text, name+" ") {
		return strings.Replace(text, name, link, 1)
	}
	return text + ", see " + link
}

func (m *Manual) failuresPage() string {
	var b strings.Builder
	b.WriteString(generated + "# Failures\n\nEvery failure has a category, and the category decides what follows. " +
		"`dagrun report errors` lists the failures of a run, `dagrun explain category NAME` prints one of these.\n\n" +
		"A specification may say otherwise: for one node (`dagrun explain retry`), or for all, by a row in " +
		"`categories` of the pipeline. A failure that is not tried again has failed the node; then its `onFail` decides: " +
		"the run pauses (`fail`), goes on without it (`continue`), leaves out what depends on it (`skip`), or asks " +
		"(`escalate`).\n\n| category | what happened |\n|---|---|\n")
	for _, c := range m.categories() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", c, c, cell(prose(sentence(m.s.CategoryDoc(c)))))
	}
	for _, row := range m.s.Categories.Fields {
		what, todo := m.meaning(row.Name)
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n**What follows.** %s\n\n**What to do.** %s\n", row.Name, paragraphs(what),
			prose(upper(byDefault(row.Value))), paragraphs(upper(todo)))
	}
	return b.String()
}

func (m *Manual) expressionsPage() string {
	var b strings.Builder
	b.WriteString(generated + "# Expressions\n\n" + paragraphs(strings.TrimSpace(expressionsDoc)) +
		"\n\n## What stands where\n\n| where | gives | may read |\n|---|---|---|\n")
	for _, p := range places {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.where, p.gives, p.reads())
	}
	b.WriteString("\nWhat differs between a run and its repetition (`run`) cannot enter a prompt or a file: settings do " +
		"not read it.\n\n## Facts of the run\n\n| fact | type | |\n|---|---|---|\n")
	for _, f := range expr.Facts {
		fmt.Fprintf(&b, "| `run.%s` | %s | %s |\n", f.Name, f.Type, f.Doc)
	}
	b.WriteString("\n## Functions\n\nEach example is true. There are also the operators and functions of CEL on " +
		"`bytes` and `uint`.\n")
	group := ""
	for _, f := range expr.Functions() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n### %s\n\n| | | example |\n|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", cell(f.Use), cell(prose(f.Gives)), cell(f.Example))
	}
	return b.String()
}

func upper(text string) string {
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// paragraphs is a comment as Markdown: what is indented stays as it is.
func paragraphs(doc string) string {
	var out []string
	code := false
	for line := range strings.SplitSeq(doc, "\n") {
		indented := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ")
		if indented != code && (indented || line != "") {
			code = indented
			if n := len(out); !code && n > 0 && out[n-1] == "" {
				out = out[:n-1]
			}
			if out = append(out, "```"); !code {
				out = append(out, "")
			}
		}
		if code {
			line = strings.TrimPrefix(line, "\t")
		} else {
			line = prose(line)
		}
		out = append(out, line)
	}
	if code {
		out = append(out, "```")
	}
	return strings.Join(out, "\n")
}

var quoted = regexp.MustCompile("`[^`]*`")

// prose makes the characters of a sentence plain that Markdown would take for its own, but for what is in backquotes.
func prose(text string) string {
	var b strings.Builder
	at := 0
	plain := strings.NewReplacer("<", "&lt;", "*", "\\*", "_", "\\_")
	for _, q := range quoted.FindAllStringIndex(text, -1) {
		b.WriteString(plain.Replace(text[at:q[0]]) + text[q[0]:q[1]])
		at = q[1]
	}
	return b.String() + plain.Replace(text[at:])
}

// cell is text in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

var update = flag.Bool("update", false, "write docs/reference anew")

// docs/reference is what the schemas say.
func TestPages(t *testing.T) {
	for name, want := range theManual(t).pages() {
		name := filepath.Join("../../docs/reference", name)
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not what the schemas say: run `make docs` (%v)", name, err)
		}
	}
}

package manual

import (
	"fmt"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// Text is an entry for a terminal.
func (e Entry) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Name, e.facts())
	if e.Doc != "" {
		fmt.Fprintf(&b, "\n%s\n", indent(e.Doc, "  "))
	}
	if e.Example != "" {
		fmt.Fprintf(&b, "\nExample:\n%s\n", indent(e.Example, "  "))
	}
	fields := len(e.Fields) > 0 && e.Fields[0].Type != "" // else they are a list of what else can be explained
	switch {
	case fields:
		b.WriteString("\nFields (* must be there):\n")
	case len(e.Fields) > 0:
		b.WriteString("\n")
	}
	for _, f := range e.Fields {
		b.WriteString(f.line(e.Name))
	}
	if fields {
		fmt.Fprintf(&b, "\nMore: dagrun explain %s\n", e.Fields[0].Name)
	}
	if len(e.See) > 0 {
		fmt.Fprintf(&b, "\nSee also: %s\n", strings.Join(e.See, ", "))
	}
	return b.String()
}

// facts are what an entry is, and what may stand there.
func (e Entry) facts() string {
	facts := []string{e.Is}
	if e.Type != "" {
		facts = append(facts, e.Type)
	}
	switch {
	case e.Default != "":
		facts = append(facts, "default "+e.Default)
	case e.Required:
		facts = append(facts, "must be there")
	case strings.HasPrefix(e.Is, "a field"):
		facts = append(facts, "may be left out")
	}
	return strings.Join(facts, "; ")
}

// line is an entry in the list of its owner.
func (e Entry) line(owner string) string {
	name, kind := strings.TrimPrefix(e.Name, owner+"."), e.Type
	if e.Required {
		name += "*"
	}
	if kind == "" {
		kind = sentence(e.Doc)
	} else if e.Default != "" {
		kind += ", default " + e.Default
	}
	text := fmt.Sprintf("  %-18s %s\n", name, wrap(kind))
	if e.Type != "" && e.Doc != "" {
		text += strings.Repeat(" ", right) + wrap(sentence(e.Doc)) + "\n"
	}
	return text
}

// right is where the right column of a list begins.
const right = 21

// wrap breaks a text of the list's right column into lines.
func wrap(text string) string {
	margin := strings.Repeat(" ", right)
	lines := printable.Wrap(margin+strings.Join(strings.Fields(text), " "), right+96, right)
	return strings.TrimPrefix(strings.Join(lines, "\n"), margin)
}

func indent(text, by string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\t", "    "), "\n", "\n"+by)
	return by + strings.ReplaceAll(text, by+"\n", "\n")
}

// category explains one row of the table of categories, or lists them.
func (m *Manual) category(path []string) (Entry, error) {
	if len(path) == 0 {
		e := Entry{Name: "category", Is: "what a failure is, and so what follows",
			Doc: "A pipeline may replace rows of this table and add some, under `categories`."}
		for _, row := range m.s.Categories.Fields {
			e.Fields = append(e.Fields,
				Entry{Name: row.Name, Is: "a category of failure", Doc: sentence(m.s.CategoryDoc(row.Name))})
		}
		return e, nil
	}
	var known []string
	for _, row := range m.s.Categories.Fields {
		if known = append(known, row.Name); row.Name == path[0] {
			what, todo := m.meaning(row.Name)
			return Entry{Name: row.Name, Is: "a category of failure",
				Doc: what + "\n\nBy default: " + byDefault(row.Value) + "\n\nTo do: " + todo}, nil
		}
	}
	return Entry{}, fmt.Errorf("no category %q is built in (one that a specification adds has a row in its categories)%s",
		path[0], rules.OrKnown(path[0], known))
}

// meaning returns what a category means and what to do about it.
func (m *Manual) meaning(category string) (what, todo string) {
	what, todo, _ = strings.Cut(m.s.CategoryDoc(category), "\n\nTo do: ")
	return what, todo
}

// byDefault says what follows a failure, by the row of its category.
func byDefault(row *tree.Value) string {
	text := map[string]string{
		"retry": "it is tried again%s; if the last attempt fails, the node has failed and its onFail decides.",
		"wait":  "the run waits until the instant that the failure names, without using up an attempt, and tries again.",
		"stop":  "the run pauses until you have helped; `dagrun resume` tries again.",
		"fail":  "it is not tried again: the node has failed, and its onFail decides.",
	}[row.Get("then").Str]
	if strings.Contains(text, "%s") {
		times := " as often as the node's retry says"
		if a := row.Get("attempts"); a != nil {
			times = fmt.Sprintf(", up to %d attempts in all (fewer where the node's retry says so)", a.Int)
		}
		text = fmt.Sprintf(text, times+delays(row.Get("retry")))
	}
	if b := row.Get("breaker"); b != nil && (b.Int > 0 || b.Float > 0) {
		text += " It counts against the node's breaker."
	}
	if f := row.Get("feedback"); f != nil && f.Bool {
		text += " The prompt of the next attempt holds the reason."
	}
	if a := row.Get("account"); a != nil && a.Bool {
		text += " No node that would ask the same account is started meanwhile."
	}
	return text
}

func delays(retry *tree.Value) string {
	if retry == nil {
		return ""
	}
	if list := retry.Get("delays"); list != nil {
		var all []string
		for _, d := range list.Items {
			all = append(all, d.Str)
		}
		return ", after " + strings.Join(all, ", ")
	}
	return fmt.Sprintf(", after %s at first and %s at most", retry.Get("base").Str, retry.Get("cap").Str)
}

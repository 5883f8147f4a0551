package evidence

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Table is what one program or API is known to say when it fails (known.txt): as recorded
// (nodes/agent/testdata/recordings, by version), as its published source has it, or as its users reported. It is
// read only where that program or API reports a failure. What is not listed has the category that
// its type, its status or the end of the program gives.
type Table struct {
	// patterns are compiled when the first failure is read: most commands meet none, and would pay for them at
	// their start.
	patterns func() patterns
	// ignored are the beginnings of lines that say nothing about a failure.
	ignored []string
	// exits are the exit statuses that the program documents.
	exits map[int]string
}

// patterns are what a Table looks for in a text.
type patterns struct {
	statuses *regexp.Regexp // the words before a status of HTTP; nil: there are none
	outputs  []output
}

type output struct {
	category string
	unsent   bool
	text     *regexp.Regexp
}

func newTable(t Table, statuses string, names ...string) *Table {
	t.patterns = sync.OnceValue(func() patterns { return compiled(statuses, names) })
	return &t
}

func compiled(statuses string, names []string) (p patterns) {
	if statuses != "" {
		p.statuses = regexp.MustCompile(`(?i)(?:` + statuses + `)\(?([345]\d\d)\b`)
	}
	for _, name := range names {
		for _, k := range lists()[name] {
			out := output{category: k.category, unsent: k.category == "unsent"}
			if out.unsent {
				out.category = "transient"
			}
			for _, text := range strings.Split(k.texts, " | ") {
				out.text = regexp.MustCompile(`(?i)` + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `[^\n]{0,40}?`))
				p.outputs = append(p.outputs, out)
			}
		}
	}
	return p
}

// The tables of the programs and APIs that are built in.
var (
	Claude = newTable(Table{
		ignored: []string{"Approaching ", "You've used "},
	}, `error:? |rejected |unexpected status `, "claude", "anthropic")

	Codex = newTable(Table{
		ignored: []string{
			"WARNING: proceeding, even though we could not create PATH aliases", "Reading prompt from stdin", "Reconnecting... ",
		},
		exits: map[int]string{2: "config"},
	}, `unexpected status |last status: |\(status |failed to refresh token: `, "codex")

	Gemini = newTable(Table{
		ignored: []string{"Warning: ", "Ripgrep is not available"},
		// 145 = 401 modulo 256
		exits: map[int]string{41: "auth", 145: "auth", 42: "config", 44: "config", 52: "config", 53: "budget"},
	}, `error: |got status: |with status |^`, "gemini")

	// Wrapped is for a program that is not built in and has failed: most are scripts around one of those, and hand on
	// what it said. Exit statuses are the script's own.
	Wrapped = newTable(Table{},
		`error:? |rejected |unexpected status |last status: |\(status |got status: |with status `,
		"claude", "anthropic", "codex", "gemini")

	Anthropic = newTable(Table{}, "", "anthropic")
	OpenAI    = newTable(Table{}, "", "openai")
)

//go:embed known.txt
var listed string

// A known is a line of known.txt: a category, in types with a status of HTTP behind it, and what means that.
type known struct{ category, texts string }

// lists are the lines of known.txt by the list that they stand in.
var lists = sync.OnceValue(func() map[string][]known {
	all, name := map[string][]known{}, ""
	for line := range strings.Lines(listed) {
		line = strings.TrimSuffix(line, "\n")
		category, texts, below := strings.Cut(strings.TrimPrefix(line, "\t"), ": ")
		switch {
		case line == "" || line[0] == '#':
		case below:
			all[name] = append(all[name], known{category, texts})
		default:
			name = line
		}
	}
	return all
})

// A meaning is what an error type says: its category, and the status of HTTP that it stands for where a service sends
// it without one; 0 = none.
type meaning struct {
	category string
	status   int
}

// types are what the error types, codes and reasons of the APIs and programs mean, in small letters.
var types = sync.OnceValue(func() map[string]meaning {
	byWord := map[string]meaning{}
	for _, k := range lists()["types"] {
		category, status, _ := strings.Cut(k.category, " ")
		for _, word := range strings.Fields(k.texts) {
			byWord[word] = meaning{category, httpStatus(status)}
		}
	}
	return byWord
})

// status returns the status that the program puts into its messages, else 0.
func (t *Table) status(text string) int {
	if t == nil || t.patterns().statuses == nil {
		return 0
	}
	if m := t.patterns().statuses.FindStringSubmatch(head(text, 4000)); m != nil {
		return httpStatus(m[1])
	}
	return 0
}

// output returns the first known output in a text, with the line it stands on.
func (t *Table) output(text string) (out output, line string) {
	if t == nil {
		return output{}, ""
	}
	text = strings.ReplaceAll(head(text, mostText), "’", "'")
	for _, o := range t.patterns().outputs {
		if at := o.text.FindStringIndex(text); at != nil {
			begin := strings.LastIndexByte(text[:at[0]], '\n') + 1
			line, _, _ = strings.Cut(text[begin:], "\n")
			return o, line
		}
	}
	return output{}, ""
}

// Exit returns the category that an exit status of the program documents, "" for none.
func (t *Table) Exit(status int) string {
	if t == nil {
		return ""
	}
	return t.exits[status]
}

// relevant returns a text without the lines that are to be ignored.
func (t *Table) relevant(text string) string {
	if t == nil || len(t.ignored) == 0 {
		return text
	}
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		plain := strings.TrimSpace(strings.ReplaceAll(line, "’", "'"))
		if !slices.ContainsFunc(t.ignored, func(begin string) bool { return strings.HasPrefix(plain, begin) }) {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}

// Package capability says what the providers of answers can do, and what is known of each. It is the one place that
// knows: the plan, a run whose provider is known late, `dagrun providers` and PROVIDERS.md ask it.
//
// It starts and asks nobody.
package capability

import (
	_ "embed"
	"slices"
	"strings"
)

// A Row is one capability.
type Row struct {
	Name string `json:"name"`
	// Settings are the fields of #Agent that the row is about; none where it only informs.
	Settings []string `json:"settings,omitempty"`
	// How says in which way each provider does it. Who does not stand there cannot.
	How map[string]string `json:"how"`
	// Cannot completes "provider x cannot ...".
	Cannot string `json:"-"`
}

//go:embed table.txt
var table string

// Rows returns the table, in its order. The rows belong to all callers.
func Rows() []Row { return rows }

var rows = parse(table)

// parse reads table.txt; a mistake in that is one of the program.
func parse(text string) (rows []Row) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		names, how, below := strings.Cut(strings.TrimPrefix(line, "\t"), ": ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '\t' && below:
			for _, name := range strings.Split(names, ", ") {
				rows[len(rows)-1].How[name] = how
			}
		default:
			f := strings.Split(line, "|")
			rows = append(rows, Row{
				Name: strings.TrimSpace(f[0]), Settings: strings.Fields(f[1]), Cannot: strings.TrimSpace(f[2]),
				How: map[string]string{},
			})
		}
	}
	return rows
}

// How returns the way in which a provider does what the row of a setting says; "" = it cannot.
func How(setting, provider string) string {
	for _, r := range rows {
		if slices.Contains(r.Settings, setting) {
			return r.How[provider]
		}
	}
	return ""
}

// FencedBlock is how providers answer in a shape that cannot hold their model to one.
const FencedBlock = "fenced block"

// Able returns the providers that can, but for the simulated one, which stands for any.
func (r Row) Able() (list []string) {
	for _, p := range Providers {
		if r.How[p.Name] != "" && p.Name != "sim" {
			list = append(list, p.Name)
		}
	}
	return list
}

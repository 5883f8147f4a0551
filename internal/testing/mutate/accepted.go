package main

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed accepted.txt
var acceptedLines string

// An acceptance is a line of accepted.txt: a change, or many (* behind a dot, a colon or an arrow stands for any text),
// two blanks, # and the reason.
type acceptance struct {
	name string
	many *regexp.Regexp
}

func (a *acceptance) holds(name string) bool { return a.many.MatchString(name) }

// of reports whether it is about files of a folder.
func (a *acceptance) of(folder string, files []string) bool {
	return slices.ContainsFunc(files, func(pattern string) bool {
		file, _, _ := strings.Cut(a.name, ": ")
		ok, _ := path.Match(folder+"/"+pattern, file)
		return ok
	})
}

func parseAccepted(text string) (accepted []acceptance, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, "  # ")
		if !ok || reason == "" {
			return nil, fmt.Errorf("accepted.txt: want a change, two blanks, # and a reason: %s", line)
		}
		any := strings.NewReplacer(`\.\*`, `\..*`, `: \*`, `: .*`, `-> \*`, `-> .*`)
		many := any.Replace(regexp.QuoteMeta(name))
		accepted = append(accepted, acceptance{name, regexp.MustCompile("^" + many + "$")})
	}
	return accepted, nil
}

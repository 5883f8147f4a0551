package simagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"
)

// templates renders answers. Functions that take a text take it last where that reads well in a
// pipe, and first where a text is cut up.
type templates struct {
	agent *agent
	dir   string // of the answers
	draws int    // so that two draws of one template differ
	depth int
}

// data is what a template sees.
type data struct {
	*Work
	Prompt string
	Files  []string
}

func (t *templates) render(name, text string) (string, error) {
	tmpl, err := template.New(name).Option("missingkey=zero").Funcs(t.funcs()).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = tmpl.Execute(&b, data{t.agent.Work, t.agent.prompt, workFiles()})
	return b.String(), err
}

// workFiles lists the working folder, without the .git that marks its top.
func workFiles() []string {
	var list []string
	_ = fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			list = append(list, path)
		}
		return nil
	})
	return list
}

func (t *templates) file(name string) (string, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	b, err := root.ReadFile(filepath.FromSlash(name))
	return string(b), err
}

// exists says whether there is such a file beside the answers.
func (t *templates) exists(name string) bool {
	_, err := t.file(name)
	return err == nil
}

func (t *templates) include(name string) (string, error) {
	if t.depth++; t.depth > 20 {
		return "", errors.New("templates include one another without end")
	}
	defer func() { t.depth-- }()
	text, err := t.file(name)
	if err != nil {
		return "", err
	}
	return t.render(name, text)
}

func (t *templates) roll() float64 {
	t.draws++
	return t.agent.roll(strconv.Itoa(t.draws))
}

func (t *templates) pick(choices ...any) (any, error) {
	if len(choices) == 1 {
		if list, ok := choices[0].([]any); ok {
			choices = list
		}
	}
	if len(choices) == 0 {
		return nil, errors.New("pick: nothing to pick from")
	}
	return choices[int(t.roll()*float64(len(choices)))], nil
}

func (t *templates) funcs() template.FuncMap {
	return template.FuncMap{
		"file": t.file, "exists": t.exists, "include": t.include, "pick": t.pick,
		"number": func(lo, hi float64) string {
			return strconv.FormatFloat(math.Round((lo+t.roll()*(hi-lo))*10)/10, 'f', 1, 64)
		},
		"int":  func(lo, hi int) int { return lo + int(t.roll()*float64(hi-lo+1)) },
		"html": lastHTML, "fence": lastFence, "first": first, "between": between, "section": section,
		"insertBefore": insertBefore, "replaceBetween": replaceBetween,
		"json":     func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
		"fromJson": func(s string) (v any, err error) { err = json.Unmarshal([]byte(s), &v); return v, err },
		"lower":    strings.ToLower, "trim": strings.TrimSpace, "title": title,
		"replace":  func(old, new, s string) string { return strings.ReplaceAll(s, old, new) },
		"contains": strings.Contains, "hasPrefix": strings.HasPrefix, "count": strings.Count,
		"lines": func(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") },
		"add":   func(a, b int) int { return a + b }, "sub": func(a, b int) int { return a - b },
		"div": whole(func(a, b int) int { return a / b }), "mod": whole(func(a, b int) int { return a % b }),
		"atoi": strconv.Atoi, "seq": seq,
		"min":  func(a, b int) int { return min(a, b) },
		"list": func(v ...any) []any { return v }, "dict": dict,
		"append": func(l []any, v any) []any { return append(slices.Clip(l), v) },
		"default": func(def, v any) any {
			if v == nil || v == "" || v == 0 {
				return def
			}
			return v
		},
	}
}

var document = regexp.MustCompile(`(?is)(?:<!doctype html|<html[\s>]).*?</html\s*>`)

// lastHTML returns the last whole HTML document in a text.
func lastHTML(text string) string {
	all := append([]string{""}, document.FindAllString(text, -1)...)
	return all[len(all)-1]
}

// lastFence returns the content of the last fenced block of a language.
func lastFence(lang, text string) string {
	found, inside, body := "", false, []string(nil)
	for _, line := range strings.Split(text, "\n") {
		mark := strings.TrimSpace(line)
		switch {
		case !inside && strings.HasPrefix(mark, "```"+lang) && strings.TrimSpace(mark[3+len(lang):]) == "":
			inside, body = true, nil
		case inside && mark == "```":
			inside, found = false, strings.Join(body, "\n")
		case inside:
			body = append(body, line)
		}
	}
	return found
}

// first returns what stands between the first from and the next to, or "".
func first(text, from, to string) string {
	if _, rest, ok := strings.Cut(text, from); ok {
		if found, _, ok := strings.Cut(rest, to); ok {
			return strings.TrimSpace(found)
		}
	}
	return ""
}

// between returns what stands between the last pair of markers.
func between(text, from, to string) string {
	if end := strings.LastIndex(text, to); end >= 0 {
		if begin := strings.LastIndex(text[:end], from); begin >= 0 {
			return strings.TrimSpace(text[begin+len(from) : end])
		}
	}
	return ""
}

var heading = regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*\s*$`)

// section returns the body of the first Markdown section whose heading holds the words.
func section(text, words string) string {
	level, body := 0, []string(nil)
	for _, line := range strings.Split(text, "\n") {
		m := heading.FindStringSubmatch(line)
		switch {
		case level > 0 && m != nil && len(m[1]) <= level:
			return strings.TrimSpace(strings.Join(body, "\n"))
		case level > 0:
			body = append(body, line)
		case m != nil && strings.Contains(strings.ToLower(m[2]), strings.ToLower(words)):
			level = len(m[1])
		}
	}
	return strings.TrimSpace(strings.Join(body, "\n"))
}

func insertBefore(text, marker, add string) string {
	if i := strings.LastIndex(text, marker); i >= 0 {
		return text[:i] + add + text[i:]
	}
	return text
}

func replaceBetween(text, from, to, by string) string {
	before, rest, begun := strings.Cut(text, from)
	_, behind, ended := strings.Cut(rest, to)
	if !begun || !ended {
		return text
	}
	return before + from + by + to + behind
}

func title(s string) string {
	list := strings.Fields(s)
	for i, w := range list {
		_, n := utf8.DecodeRuneInString(w)
		list[i] = strings.ToUpper(w[:n]) + w[n:]
	}
	return strings.Join(list, " ")
}

// whole is a division of whole numbers.
func whole(divide func(a, b int) int) func(a, b int) (int, error) {
	return func(a, b int) (int, error) {
		if b == 0 {
			return 0, errors.New("division by zero")
		}
		return divide(a, b), nil
	}
}

func seq(from, to int) ([]int, error) {
	if to-from > 10000 {
		return nil, fmt.Errorf("seq: %d to %d is too long", from, to)
	}
	var list []int
	for i := from; i <= to; i++ {
		list = append(list, i)
	}
	return list, nil
}

func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict: want name and value in turn")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m, nil
}

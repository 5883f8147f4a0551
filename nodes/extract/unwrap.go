package extract

import (
	"bytes"
	"encoding/json"
	"html"
	"strings"

	"dagrun.dev/nodes/internal/markdown"
)

// unwrapped returns the answer that stands escaped in an answer: in strings of its JSON value, or written with
// character references. how says which; "" when there is neither, with cut when a JSON value breaks off.
func (a *answer) unwrapped() (inner *answer, how string, cut bool) {
	values, cut := a.jsonValues()
	var texts []string
	if text := a.text(); strings.HasPrefix(text, `"`) {
		values = append(values, json.RawMessage(text))
	}
	for _, raw := range values {
		texts = append(texts, pagesIn(raw)...)
	}
	if texts != nil {
		return cutUp(strings.Join(texts, "\n\n"), nil), "the document stands in a JSON string", false
	}
	if text, ok := unescaped(a.src); ok {
		return cutUp(text, nil), "the document is written with character references", false
	}
	return nil, "", cut && (markdown.IndexFold(a.src, "<html") >= 0 || markdown.IndexFold(a.src, "<!doctype") >= 0)
}

// pagesIn returns the strings of a JSON value that hold the start of a document.
func pagesIn(raw json.RawMessage) []string {
	var out []string
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.Token()
		if err != nil {
			return out
		}
		if s, ok := token.(string); ok && (markdown.IndexFold(s, "<!doctype") >= 0 || markdown.IndexFold(s, "<html") >= 0) {
			out = append(out, s)
		}
	}
}

// numbered writes brackets by name that are written by number.
var numbered = strings.NewReplacer("&#60;", "&lt;", "&#x3c;", "&lt;", "&#x3C;", "&lt;", "&#62;", "&gt;", "&#x3e;", "&gt;", "&#x3E;", "&gt;")

// unescaped returns the part of a text from an escaped start of a document to its last escaped end.
func unescaped(src string) (string, bool) {
	src = numbered.Replace(src)
	start := markdown.IndexFold(src, "&lt;!doctype html")
	if start < 0 {
		start = markdown.IndexFold(src, "&lt;html")
	}
	if start < 0 {
		return "", false
	}
	const closing = "&lt;/html&gt;" // one may stand in a script's text, too
	end := start
	for {
		n := markdown.IndexFold(src[end:], closing)
		if n < 0 {
			break
		}
		end += n + len(closing)
	}
	return html.UnescapeString(src[start:end]), end > start
}

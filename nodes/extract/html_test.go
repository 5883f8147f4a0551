package extract

import (
	"html"
	"reflect"
	"strings"
	"testing"

	"dagrun.dev/nodes/internal/accept"
)

const page = "<!DOCTYPE html>\n<html><head><title>t</title></head>\n<body><h1>ok</h1></body>\n</html>"

// C-8, R-5: neighbours of the collection's cases. want is the document; "" is a failure of that class.
func TestHTML(t *testing.T) {
	other := strings.Replace(page, "ok", "other", 1)
	script := strings.Replace(page, "<h1>", "<script>\nconst t = `\n<!DOCTYPE html>\n<html><body>x</body></html>\n`;\n</script><h1>", 1)
	sample := strings.Replace(page, "<h1>", "<pre>\n```html\n<!DOCTYPE html>\n<html><body>x</body></html>\n```\n</pre><h1>", 1)
	tests := []struct{ name, answer, with, outcome, class, want string }{
		// fences
		{"tildes", "~~~html\n" + page + "\n~~~\nbye", "", "ok", "", page},
		{"tildes around backticks", "~~~\n" + sample + "\n~~~", "", "ok", "", sample},
		{"carriage returns alone", strings.ReplaceAll("a\n```html\n"+page+"\n```\n", "\n", "\r"), "", "ok", "", strings.ReplaceAll(page, "\n", "\r")},
		{"file name first in the block", "```html\nindex.html\n" + page + "\n```", "", "ok", "", page},
		{"comment first in the block", "```html\n<!-- index.html -->\n" + page + "\n```", "", "ok", "", page},
		{"inside a program", "```python\nprint('''\n" + page + "\n''')\n```", "", "ok", "", page},
		{"open block of another language before", "```css\na{}\n\n```html\n" + page + "\n```", "", "ok", "", page},
		{"remarks and a block behind an unclosed one", "```html\n" + page + "\n\nRun:\n\n```sh\nls\n```\n", "", "ok", "", page},
		{"tab indent", "- page:\n\t```html\n\t<!DOCTYPE html>\n\t<html><body>\n\t\tx</body></html>\n\t```", "", "ok_warn", "", "<!DOCTYPE html>\n<html><body>\n\tx</body></html>"},
		{"behind other words on its line", "Here it is: " + page, "", "ok", "", page},
		{"nothing but the page", page, "", "ok", "", page},
		{"doctype named in a sentence", "Begin with <!DOCTYPE html> and end it.\n\n" + page, "", "ok", "", page},
		{"tags named in code", "Use `<html><body>x</body></html>` so.\n" + page, "", "ok", "", page},
		// thinking
		{"thinking with a draft", "<think>\n```html\n" + other + "\n```\n</think>\n" + page, "", "ok", "", page},
		{"thinking without a start", "draft:\n" + other + "\n</think>\n\n" + page, "", "ok_warn", "", page},
		{"thinking without an end", "<thinking>\nhm\n" + page, "", "fail", "truncated", page},
		{"page right behind thinking", "<think>x</think>" + page, "", "ok", "", page},
		{"thinking named in a sentence", "I <think> so.\n" + page, "", "ok", "", page},
		// samples inside the page
		{"page in a script string", "```html\n" + script + "\n```", "", "ok", "", script},
		{"page in pre, not escaped", sample, "", "ok", "", sample},
		{"pre never closed", strings.Replace(page, "<h1>", "<pre>x<h1>", 1), "", "ok", "", strings.Replace(page, "<h1>", "<pre>x<h1>", 1)},
		{"old page in a comment", strings.Replace(page, "<h1>", "<!--\n"+page+"\n--><h1>", 1), "", "ok", "", strings.Replace(page, "<h1>", "<!--\n"+page+"\n--><h1>", 1)},
		// X5: doubt is asked about
		{"a stray fence behind the draft", "Draft:\n```html\n" + other + "\n```\n```\nFinal version:\n```html\n" + page + "\n```", "", "fail", "ambiguous", ""},
		{"a stray fence before the draft", "```\nDraft:\n```html\n" + other + "\n```\nFinal version:\n```html\n" + page + "\n```\n```", "", "fail", "ambiguous", ""},
		{"a draft in thinking that is never closed", "<think>\nMaybe:\n```html\n" + other + "\n```\nBetter:\n```html\n" + page + "\n```", "", "fail", "truncated", ""},
		{"nothing behind the end of thinking", "Maybe:\n" + other + "\n</think>\nDone.", "", "fail", "truncated", ""},
		{"the block ends in the middle", "```html\n<!DOCTYPE html>\n<html><body><p>a\n```\nOn:\n```html\nb</body></html>\n```", "", "fail", "truncated", ""},
		// cut and begun again
		{"cut in a style, begun again", "```html\n<!DOCTYPE html>\n<html><head><style>\nbody{col\n\nSorry, again:\n\n```html\n" + strings.Replace(page, "<title>", "<style>a{}</style><title>", 1) + "\n```", "", "ok_warn", "",
			strings.Replace(page, "<title>", "<style>a{}</style><title>", 1)},
		{"cut in a script, begun again without one", "```html\n<!DOCTYPE html>\n<html><head><script>\nlet a = \n\nAgain:\n```html\n" + page + "\n```", "", "ok_warn", "", page},
		{"cut in a tag, begun again", "<!DOCTYPE html>\n<html><body><p class=\"a\n\nAgain:\n" + page, "", "ok_warn", "", page},
		{"cut in a comment, begun again", "<!DOCTYPE html>\n<html><body><!-- a\n\nAgain:\n" + page, "", "ok_warn", "", page},
		{"cut twice", "<html><body>1\n<html><body>2\n" + page, "", "ok_warn", "", page},
		{"whole, then one cut", page + "\nand\n" + page[:60], "", "ok_warn", "", page},
		{"draft, then the final one cut", page + "\nFinal:\n" + strings.Replace(page, "ok", "final", 1)[:66], "", "fail", "truncated", ""},
		{"draft, then the final one cut in its block", "```html\n" + page + "\n```\n```html\n<!DOCTYPE html><html><body>cut", "", "fail", "truncated", ""},
		{"draft, then a part in a closed block", "```html\n" + page + "\n```\n```html\n<!DOCTYPE html>\n<html><body>a part\n```\n", "", "fail", "truncated", page},
		// truncation
		{"cut", "```html\n" + page[:len(page)-20], "", "fail", "truncated", ""},
		{"cut, block closed", "```html\n<!DOCTYPE html>\n<html><body><p>and so\n```", "", "fail", "truncated", ""},
		{"cut in a script that has the end tag as text", "<!DOCTYPE html>\n<html><body><script>x = '</html>'", "", "fail", "truncated", ""},
		{"cut behind the body", "<!DOCTYPE html>\n<html><body>x</body>\n", "", "fail", "truncated", ""},
		{"end tag forgotten", "```html\n<!DOCTYPE html>\n<html><body>x</body>\n```\nDone.", "", "fail", "truncated", ""},
		{"rest in an open comment", page[:40] + "<body>x<!-- rest", "", "fail", "truncated", ""},
		{"no page, ends in dots", "First I will write the header and then...", "", "fail", "truncated", ""},
		// no page
		{"empty", "", "", "fail", "no_artifact", ""},
		{"escaped page", "&lt;!DOCTYPE html&gt;&lt;html&gt;&lt;/html&gt;", "", "fail", "no_artifact", ""},
		{"escaped page, the end tag in a text of its script", html.EscapeString(tailed("<script>x = '</html>'</script>")), "", "fail", "no_artifact", tailed("<script>x = '</html>'</script>")},
		{"svg", "```svg\n<?xml version=\"1.0\"?>\n<svg></svg>\n```", "", "fail", "no_artifact", ""},
		{"html tag named only", "The <html> tag is fine, <b>no change</b> needed.", "", "fail", "no_artifact", ""},
		{"diff", "```diff\n--- a/p\n+++ b/p\n <!DOCTYPE html>\n <html><body>\n-a\n+b\n </body></html>\n```", "", "fail", "no_artifact", ""},
		{"diff without a block", "+<!DOCTYPE html>\n+<html><body>b</body></html>", "", "fail", "no_artifact", ""},
		{"quoted page", "> " + strings.ReplaceAll(page, "\n", "\n> "), "", "fail", "no_artifact", ""},
		{"page with line numbers", "1 <!DOCTYPE html>\n2 <html><body>x\n3 </body></html>", "", "fail", "no_artifact", ""},
		{"page in a JSON string", `{"html": "<!DOCTYPE html>\n<html lang=\"en\"><body>x</body></html>"}`, "", "fail", "no_artifact", "<!DOCTYPE html>\n<html lang=\"en\"><body>x</body></html>"},
		{"page in tags", "<answer>\n" + page + "\n</answer>", "", "ok", "", page},
		{"page in tags on its line", "<answer>" + page + "</answer>", "", "ok", "", page},
		{"page in a template", tailed("<template><html></html></template>"), "", "ok", "", tailed("<template><html></html></template>")},
		{"page in a template, in a block", "```html\n" + tailed("<template>\n<html><body>x</body></html>\n</template>") + "\n```", "", "ok", "", tailed("<template>\n<html><body>x</body></html>\n</template>")},
		{"end in a template", tailed("<template></html></template>"), "", "ok", "", tailed("<template></html></template>")},
		{"end in an element", tailed("<div></html></div>"), "", "fail", "ambiguous", tailed("<div></html></div>")},
		{"page in an element", tailed("<div><html><body>x</body></html> </div>"), "", "fail", "ambiguous", tailed("<div><html><body>x</body></html> </div>")},
		{"page in an element, at line starts", tailed("<div>\n<html>\n<body>x</body>\n</html>\n</div>\n"), "", "fail", "ambiguous", tailed("<div>\n<html>\n<body>x</body>\n</html>\n</div>\n")},
		{"page with a doctype in an element, in a block", "```html\n" + tailed("<section>\n<!DOCTYPE html>\n<html>\n<body>x</body>\n</html>\n</section>\n") + "\n```", "", "fail", "ambiguous",
			tailed("<section>\n<!DOCTYPE html>\n<html>\n<body>x</body>\n</html>\n</section>\n")},
		{"cut in an element, begun again", "<!DOCTYPE html>\n<html><body><div>a\n" + page, "", "ok_warn", "", page},
		{"template that is never closed", tailed("<template><p>x</p>"), "", "ok", "", tailed("<template><p>x</p>")},
		{"samples and templates never closed", tailed("<pre><template><html></html>x</template>"), "", "fail", "ambiguous", tailed("<pre><template><html></html>x</template>")},
		{"own tags around a page, a remark behind", "<answer>" + page + "</answer>\nKeep </body></html> last.", "", "fail", "ambiguous", page},
		{"second html tag, a block behind", "```html\n" + tailed("<html>") + "\n```\n```html\n<p>x</p></body></html>\n```", "", "ok", "", tailed("<html>")},
		{"second html tag", tailed("<html>") + "\nKeep </html> last.", "", "ok", "", tailed("<html>")},
		{"empty html", "<html></html>", "", "fail", "truncated", ""},
		// several
		{"fence and text differ", "```html\n" + page + "\n```\n" + other, "", "fail", "ambiguous", ""},
		{"same but for line ends", "```html\n" + page + "\n```\n" + strings.ReplaceAll(page, "\n", "\r\n"), "", "ok", "", page},
		{"first", page + "\n" + other, `"policy":"first"`, "ok_warn", "", page},
		{"largest", page + "\n" + other, `"policy":"largest"`, "ok_warn", "", other},
		{"order", page + "\n```\n" + other + "\n```", `"policy":"order"`, "ok_warn", "", other},
		{"order, declared otherwise", page + "\n```\n" + other + "\n```", `"policy":"order","strategies":["doctype","fence"]`, "ok_warn", "", page},
		{"only one strategy", page + "\n```\n" + other + "\n```", `"strategies":["fence"]`, "ok", "", other},
		{"strategy finds none", page, `"strategies":["fence","html"]`, "fail", "no_artifact", ""},
		{"html strategy", "a\n<html><body>x</body></html>", `"strategies":["html"]`, "ok_warn", "", "<html><body>x</body></html>"},
		// settings
		{"fragment allowed", "```html\n<p>x</p>\n```", `"fragments":true`, "ok", "", "<p>x</p>"},
		{"fragments, two", "```html\n<p>x</p>\n```\n```html\n<p>y</p>\n```", `"fragments":true`, "fail", "ambiguous", ""},
		{"fragment not allowed", "```html\n<p>x</p>\n```", "", "fail", "no_artifact", ""},
		{"doctype added", "<html><body>x</body></html>", `"doctype":"add"`, "ok_warn", "", "<!DOCTYPE html>\n<html><body>x</body></html>"},
		{"doctype required", "<html><body>x</body></html>", `"doctype":"fail"`, "fail", "validation_failed", ""},
		{"nul removed", strings.Replace(page, "ok", "o\x00k", 1), `"controls":"remove"`, "ok_warn", "", page},
		{"escape characters", strings.Replace(page, "ok", "o\x1b[1mk", 1), "", "ok", "", strings.Replace(page, "ok", "o\x1b[1mk", 1)},
		{"no html tag", "<!DOCTYPE html>\n<title>t</title>\n<body>x</body></html>", "", "ok_warn", "", "<!DOCTYPE html>\n<title>t</title>\n<body>x</body></html>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := accept.NewState(nil, tt.answer)
			with := `{"html":{"to":"p"}}`
			if tt.with != "" {
				with = `{"html":{"to":"p",` + tt.with + `}}`
			}
			err := newStep(t, with).Apply(s)
			outcome, class := outcomeOf(t, s, err)
			if outcome != tt.outcome || class != tt.class {
				t.Errorf("%s %s, want %s %s\nerror %v\nwarnings %q", outcome, class, tt.outcome, tt.class, err, s.Warnings)
			}
			if got := string(s.Artifacts["p"]); got != tt.want && outcome != "fail" {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if _, taken := s.Artifacts["p"]; taken && err != nil {
				t.Error("an artifact in spite of a failure")
			}
		})
	}
}

// C-12: an unchanged artifact is accepted, with a decision and a quality record.
func TestUnchangedIsAccepted(t *testing.T) {
	for previous, want := range map[string][]string{
		page + "\n": {"size", "accept-no-modification", "no-modification", "extract-html"},
		"else":      {"size", "extract-html"},
	} {
		s := accept.NewState(nil, "```html\n"+page+"\n```")
		s.Artifact = artifacts{"p": []byte(previous)}.open
		if err := newStep(t, `{"html":{"to":"p"}}`).Apply(s); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range s.Notes {
			got = append(got, n.Type)
		}
		if !reflect.DeepEqual(got, want) || s.Values["changed"] != (len(want) == 2) || len(s.Warnings) > 0 {
			t.Errorf("notes %q, want %q; values %v", got, want, s.Values)
		}
	}
}

// C-8: notes are taken whether or not the document was usable, and belong to nobody else.
func TestNotes(t *testing.T) {
	const a, z = "<!-- X_START -->", "<!-- X_END -->"
	tests := []struct{ name, answer, outcome, class, notes, page string }{
		{"behind the page", page + "\n" + a + "\n note\n more \n" + z, "ok", "", " note\n more", page},
		{"on one line", page + "\n" + a + " note " + z, "ok", "", " note", page},
		{"right behind the end tag", page + a + "note" + z + "\n", "ok", "", "note", page},
		{"two kinds in a row", a + "1" + z + a + "2" + z + "\n" + page, "ok_warn", "", "1\n2", page},
		{"no blanks in the comment", "<!--X_START-->\nn\n<!--  X_END-->\n" + page, "ok", "", "n", page},
		{"named in a sentence", "I put them between " + a + " and " + z + ".\n" + page + "\n" + a + "\nn\n" + z, "ok", "", "n", page},
		{"end behind text", a + "\nn1\nn2 " + z + "\n" + page, "ok", "", "n1\nn2", page},
		{"page cut", a + "\nn\n" + z + "\n" + page[:60], "fail", "truncated", "n", ""},
		{"notes behind a page without its end", "```html\n" + page[:len(page)-8] + "\n```\n" + a + "\nn\n" + z, "fail", "truncated", "n", ""},
		{"no page", a + "\nn\n" + z, "fail", "no_artifact", "n", ""},
		{"page in the notes", a + "\n" + page + "\n" + z, "fail", "no_artifact", strings.TrimSpace(page), ""},
		{"inside the page", strings.Replace(page, "</html>", a+"\nn\n"+z+"\n</html>", 1), "ok_warn", "", "n", strings.Replace(page, "</html>", "\n</html>", 1)},
		{"around the page's body", strings.Replace(strings.Replace(page, "<body>", a+"<body>", 1), "</html>", z+"</html>", 1), "ok_warn", "", "-",
			strings.Replace(strings.Replace(page, "<body>", a+"<body>", 1), "</html>", z+"</html>", 1)},
		{"never closed", page + "\n" + a + "\nn", "ok_warn", "", "-", page},
		{"missing", page, "ok_warn", "", "-", page},
		{"in a code block", page + "\n```\n" + a + "\nn\n" + z + "\n```", "ok_warn", "", "n", page},
		{"markers in a script of the page", strings.Replace(page, "<h1>", "<script>x = `\n"+a+"\nno\n"+z+"\n`</script><h1>", 1) + "\n" + a + "\nn\n" + z, "ok", "", "n",
			strings.Replace(page, "<h1>", "<script>x = `\n"+a+"\nno\n"+z+"\n`</script><h1>", 1)},
		{"before the page in its block", "```html\n" + a + "\nn\n" + z + "\n" + page + "\n```", "ok_warn", "", "n", page},
		{"behind the page in its block", "```html\n" + page + "\n" + a + "\nn\n" + z + "\n```", "ok", "", "n", page},
		{"before a stray end of thinking", a + "\nn\n" + z + "\n" + page + "\n</think>\nDone.", "fail", "truncated", "-", ""},
		{"in thinking", "<think>\n" + a + "\nno\n" + z + "\n</think>\n" + a + "\nn\n" + z + "\n" + page, "ok", "", "n", page},
		{"carriage returns", page + "\r\n" + a + "\r\nn\r\nm\r\n" + z + "\r\n", "ok", "", "n\nm", page},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := accept.NewState(nil, tt.answer)
			err := accept.Run([]accept.Step{
				newStep(t, `{"markers":{"x":{"start":"`+a+`","end":"`+z+`"}}}`),
				newStep(t, `{"html":{"to":"p"}}`),
			}, s)
			outcome, class := outcomeOf(t, s, err)
			if outcome != tt.outcome || class != tt.class {
				t.Errorf("%s %s, want %s %s\nerror %v\nwarnings %q", outcome, class, tt.outcome, tt.class, err, s.Warnings)
			}
			notes, ok := s.Texts["x"]
			if !ok {
				notes = "-"
			}
			if notes != tt.notes || string(s.Artifacts["p"]) != tt.page {
				t.Errorf("notes %q, want %q; page\n%s", notes, tt.notes, s.Artifacts["p"])
			}
		})
	}
}

// tailed is a page with a part and something behind it.
func tailed(part string) string { return strings.Replace(page, "<h1>ok</h1>", part+"<p>tail</p>", 1) }

// Hostile answers cost a bounded number of bytes read, however long they are.
func TestReadsAreLinear(t *testing.T) {
	for name, unit := range map[string]string{
		"documents that never end": "<!DOCTYPE html>\n<html><body>\n",
		"scripts that never end":   "<!DOCTYPE html>\n<script>\n",
		"tags that never end":      "<html x='\n",
		"open fences":              "```html\n<html>\n",
		"thoughts":                 "<think>\n",
		"markers":                  "<!-- X_START -->\n<html>\n",
		"starts on one line":       "<html><body>",
		"whole documents":          page + "\n",
		"pre":                      "<html><pre></html>\n",
		"ends before tags":         "<html><p><html></html><p>",
		"ends before tags, lines":  "<html><p></html><p></body>\n",
		"ends in code blocks":      "```\n<!-- X_END -->\n```\n",
	} {
		const size = 1 << 17
		src := "<!-- X_START -->\n" + strings.Repeat(unit, size/len(unit))
		a := cutUp(src, []accept.Marker{{Name: "x", Start: "<!-- X_START -->", End: "<!-- X_END -->"}})
		if most := (walks + 1) * len(src); a.read > most+1<<17 {
			t.Errorf("%s: read %d bytes of %d", name, a.read, len(src))
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{page, "```html\n" + page + "\n```", "<think>", "<<<N\na\nN>>>\n", "~~~\n<html>", "<!-- S --><html><body><!-- E --></html>", "`<html>` <pre>", "{\"a\": [1]}", "## H\ntext"} {
		f.Add(s)
	}
	step, err := accept.ParseStep(Kind, []byte(`{"html":{"to":"p"},"json":{"to":"j"},"text":{"to":"t"},
		"markers":{"n":{"start":"<<<N","end":"N>>>"},"c":{"start":"<!-- S -->","end":"<!-- E -->"}},"sections":{"h":{"heading":"H"}}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		s := accept.NewState(nil, answer)
		err := step.Apply(s)
		outcomeOf(t, s, err)
		p, ok := s.Artifacts["p"]
		if ok && !strings.Contains(strings.ToLower(string(p)), "</html") {
			t.Fatalf("took %q", p)
		}
		if again := accept.NewState(nil, string(p)); ok && len(s.Warnings) == 0 {
			if _ = step.Apply(again); string(again.Artifacts["p"]) != string(p) {
				t.Fatalf("took %q, and of that %q", p, again.Artifacts["p"])
			}
		}
	})
}

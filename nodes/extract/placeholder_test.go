package extract

import (
	"strings"
	"testing"

	"dagrun.dev/nodes/internal/accept"
)

func inPage(part string) string {
	return "<!DOCTYPE html>\n<html>\n<head><title>t</title></head>\n<body>\n" + part + "\n</body>\n</html>"
}

// marks of a part that was left out; words that no mark declares are none.
func TestPlaceholders(t *testing.T) {
	for _, part := range []string{
		"<!-- ... existing sections ... -->", "<!-- … more cards … -->", "<!-- rest of the page unchanged -->", "<!-- REST  UNCHANGED -->",
		"<!-- Sections 3-8 omitted for brevity -->", "<!-- Your content here -->", "[... remaining sections unchanged ...]", "<p>[… the other cards]</p>",
		"<style>\n/* ... styles as before ... */\n</style>", "<script>\n// ... same code as above\n</script>", "<script>\n  /* rest unchanged */\n</script>",
		"<section>...</section>", "<main>\n[…]\n</main>", "<!-- [...existing code...] -->",
		"<!-- ... -->", "<!-- …… -->", "<!-- . . . -->", "<!-- (⋯) -->", "<!-- ... 12 more cards ... -->", "<!-- ...其余部分不变... -->", "<svg><!-- ... --></svg>",
		"<style>\n/* ... */\n</style>", "<script>\n// ......\n</script>", "<p>[... 5 more rows ...]</p>", "<p>【…其余内容同上】</p>", "<div>{/* ... rest of the cards */}</div>",
		"<div>{/* … */}</div>", "<section>……</section>", "<main>. . .</main>",
	} {
		if placeholder(inPage(part), defaultMarks) == "" {
			t.Errorf("not found in %s", part)
		}
	}
	for _, part := range []string{
		"<!-- the rest of the grid starts here -->", "<!-- Footer (unchanged since v2) --><footer>x</footer>", "<!-- TODO list component -->",
		"<!-- existing customers only -->", "<p>He said nothing... and the rest is history.</p>", "<p>Prices unchanged since May.</p>",
		"<p>...and the rest of the team stayed.</p>", "<p>Loading...</p>", "<pre><code>// ... existing code ...\nadd(1)</code></pre>",
		"<pre>[... remaining lines unchanged ...]</pre>", "<pre><!-- ... existing code ... --></pre>", "<textarea>[... more]</textarea>",
		"<script>const s = '// ... existing code ...';</script>", "<script>\nfetch(); // wait for it...\nf(...rest)\n</script>",
		"<style>a::after{content:'... rest unchanged ...'}</style>", "<input placeholder=\"... rest unchanged ...\">", "<p>[…] the town slept</p>", "<p>[...]</p>",
		"<td>...</td>", "<p>{...}</p>", "<p>【…】</p>", "<ul><li>One</li><li>…</li></ul>",
		"<script>\nconst b = {\n  ...a,\n  ...rest,\n};\n</script>", "<!--[if IE]> ... <![endif]-->", "<p>[1] ibid.</p>", "<!-- INTENT: calm... -->", "<p>The rest of the page explains why.</p>",
	} {
		if got := placeholder(inPage(part), defaultMarks); got != "" {
			t.Errorf("found in %s: %q", part, got)
		}
	}
	s := accept.NewState(nil, inPage("<!-- wie bisher -->"))
	if _, class := outcomeOf(t, s, newStep(t, `{"html":{"to":"p","marks":["wie bisher"]}}`).Apply(s)); class != "placeholder" {
		t.Errorf("a declared mark: %q", class)
	}
}

// a page is at least half as long as the version before, unless a spec says otherwise.
func TestAtLeastHalf(t *testing.T) {
	before := inPage(strings.Repeat("<p>text</p>\n", 100))
	for _, tt := range []struct {
		lines int
		with  string
		class string
	}{
		{60, "", ""}, {30, "", "placeholder"}, {30, `,"atLeast":0.2`, ""}, {1, `,"atLeast":0`, ""}, {95, `,"atLeast":1`, "placeholder"}, {30, `,"previous":"other"`, ""},
	} {
		s := accept.NewState(nil, inPage(strings.Repeat("<p>text</p>\n", tt.lines)))
		s.Artifact = artifacts{"p": []byte(before)}.open
		if _, class := outcomeOf(t, s, newStep(t, `{"html":{"to":"p"`+tt.with+`}}`).Apply(s)); class != tt.class {
			t.Errorf("%d lines %s: %q, want %q", tt.lines, tt.with, class, tt.class)
		}
	}
}

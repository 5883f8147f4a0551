package extract

import (
	"strings"
	"testing"
)

func inPage(part string) string { return strings.Replace(page, "<h1>ok</h1>", part, 1) }

// C-8: parts that were left out are told from honest text.
func TestPlaceholders(t *testing.T) {
	lazy := []string{
		"<!-- rest of the page unchanged -->",
		"<!-- Rest of sections remain the same -->",
		"<!-- ... existing sections ... -->",
		"<!-- … existing sections … -->",
		"<!-- ===== Remaining cards omitted ===== -->",
		"<!-- [remaining content unchanged] -->",
		"<!-- Sections 3-8 omitted for brevity -->",
		"<!-- (content omitted to save space) -->",
		"<!-- all other sections as before... -->",
		"<!-- existing styles unchanged -->",
		"<!-- everything else stays the same -->",
		"<!-- Your content here -->",
		"<!-- TODO: add the chart -->",
		"<!-- FIXME - implement the footer -->",
		"<header><!-- header unchanged --></header>",
		"<div class=chart><!-- chart goes here --></div>",
		"<style>/* ... styles as before ... */</style>",
		"<style>a{}\n/* rest of styles unchanged */</style>",
		"<style>.x{ /* same as above */ }</style>",
		"<script>\n// ... same code as above\n</script>",
		"<script>let u='http://x';\n// ... rest of the code ...\n</script>",
		"<script>const a = b / 2; /* ... existing handlers ... */</script>",
		"<script>const r = /[/'\"]/; // rest of the functions omitted\n</script>",
		"<script type=\"module\">function f() {\n  // unchanged\n}</script>",
		"<script>{/* ... rest of component ... */}</script>",
		"[... remaining sections unchanged ...]",
		"<p>[Rest of the page unchanged]</p>",
		"<p>[Rest of content here]</p>",
		"<div>[remaining sections]</div>",
		"<p>... rest of the content remains the same ...</p>",
		"<p>(Sections 2 to 5 omitted for brevity)</p>",
		"<p>Your content here</p>",
		"<p>Remaining sections omitted for brevity</p>",
		"<p>Rest of the page unchanged</p>",
		"{/* ... rest of the markup ... */}",
		"<!-- ... -->", "<!-- […] -->", "<!-- etc. -->", "<!-- rest of the code here -->", "<!-- existing code here -->", "<!-- existing content -->",
		"<!-- more sections here -->", "<!-- additional sections go here -->", "<!-- omitted for brevity -->", "<!-- content truncated -->", "<!-- snip -->",
		"<!-- not repeated here -->", "<!-- identical to the original -->", "<!-- copy from previous version -->", "<!-- as in the previous version -->",
		"<!-- continue with remaining sections -->", "<!-- repeat for other cards -->", "<!-- TODO -->", "<!-- TODO: rest of page -->", "<!-- placeholder for the chart -->",
		"<!-- your content -->", "<!-- . . . rest unchanged . . . -->", "<!-- Rest unverändert -->", "<!-- reste inchangé -->",
		"<style>/* existing styles */</style>", "<style>@media print { /* ... */ }</style>", "<script>function a() { /* ... */ }</script>", "<script>\n// (unchanged)\n</script>",
		"<p>Sections 3-8 omitted for brevity.</p>", "<p>The rest of the page remains unchanged.</p>", "<p>Rest of the page remains the same.</p>", "<p>[Insert content here]</p>",
		"<p>Your text here...</p>", "<section>...</section>", "<main>[...]</main>", "<body>…</body>",
		"<!-- unchanged -->\n<footer>x</footer>", "<!-- (same as before) -->\n<footer>x</footer>", "<!-- [unchanged] -->\n\n<footer>x</footer>",
		"<p>x</p>\n<!-- unchanged from the previous version -->\n<p>y</p>", "<!-- identical to the original -->\n<p>y</p>",
		"<!-- not changed -->\n<p>y</p>", "<section><!-- not modified --></section>", "<!-- ... (continued) -->\n<p>y</p>", "<!-- ... 200 lines ... --><p>y</p>",
		"<p>x</p><!-- same as previous version -->", "<p>x</p><!-- keep the same as previous version -->", "<p>x</p><!-- as before -->", "<p>x</p><!-- unchanged -->",
		"<!-- All other sections remain identical -->", "<p>x</p><!-- All other sections remain identical --><p>y</p>", "<!-- (other sections as in previous version) --><p>y</p>",
		"<p>x</p> <!-- (unchanged from the previous version) -->", "<p>x</p><!-- everything is the same as before -->", "<p>x</p><!-- not shown -->",
		"<script>// keep the rest of the code unchanged\n</script>", "<script>// keep the rest unchanged\n</script>", "<!-- leave the rest as is -->", "<p>The remaining sections are unchanged from the previous version.</p>", "<!-- everything unchanged until the footer, rest as is -->",
		"<!-- the remaining sections are kept unchanged -->", "<!-- remaining sections are preserved as before -->", "<p>x<code></p><!-- rest of the page unchanged -->",
	}
	for _, part := range lazy {
		if got := placeholders(inPage(part)); len(got) != 1 {
			t.Errorf("not found in %s: %q", part, got)
		}
	}
	honest := []string{
		"<!-- the rest of the grid starts here -->",
		"<!-- header --><h1>x</h1>",
		"<!-- Footer (unchanged since v2) --><footer>x</footer>",
		"<!-- chart goes here --><div id=chart></div>",
		"<!-- TODO list component -->",
		"<!-- existing customers only -->",
		"<!-- Section 3: what stays the same and why it matters for the reader of this page --><p>x</p>",
		"<p>He said nothing... and the rest is history.</p>",
		"<p>Prices unchanged since May. Remaining seats: 4.</p>",
		"<p>...and the rest of the team stayed.</p>",
		"<p>Loading...</p><p>More...</p><a>Continue reading...</a>",
		"<h2>TODO: add milk</h2>",
		"<pre><code>// ... existing code ...\nadd(1)</code></pre>",
		"<pre>[... remaining lines unchanged ...]</pre>",
		"<code>/* rest unchanged */</code>",
		"<textarea>... rest unchanged ...</textarea>",
		"<script>const s = '// ... existing code ...';</script>",
		"<script>const s = `/* rest unchanged */`;</script>",
		"<script type=\"application/json\">{\"a\": \"// ... rest unchanged\"}</script>",
		"<script>// keep the existing order\nsort();\n// the rest parameter\n</script>",
		"<script>// same as above but for touch\ntouch();\n</script>",
		"<style>/* remaining space goes to the main column */ a{}</style>",
		"<style>a::after{content:'... rest unchanged ...'}</style>",
		"<input placeholder=\"... rest unchanged ...\">",
		"<p>The method was unchanged. Some sections of the code were omitted in the paper.</p>",
		"<p>[citation needed]</p>",
		"<div>x</div><!-- content -->", "<div>x</div> <!-- existing content -->\n", "<div>x</div>\n<!-- /more content -->", "<p>[…] the town slept</p>", "<p>...</p>", "<button>…</button>",
		"<p>The rest of the page explains why.</p>", "<p>The remaining sections were omitted in the first edition of the book, for brevity.</p>",
		"<p>Everything else stays the same: the taxes, the weather, the news.</p>", "<td>unchanged</td><td>same as above</td>", "<!-- same grid as above, two columns --><div>x</div>",
		"<!-- placeholder image with ratio box --><img>", "<style>/* existing tokens */ :root{--a:1}</style>", "<style>/* ---- remaining utilities ---- */ .c{}</style>", "<template><!-- item goes here --><li></li></template>",
		"<style>/* same colours as before, but darker */</style>", "<script>// leaves the rest of the list unchanged\n</script>", "<script>// leave the rest of the list unchanged\n</script>",
		"<script>// remaining args are passed through as before\n</script>", "<script>// leaves the list unchanged\n</script>", "<script>// keep the value unchanged\n</script>",
		"<script>// keep the existing value unchanged when the rest API fails\n</script>", "<script>// the REST call keeps the list the same\n</script>",
		"<script>/* remaining args get passed on as before */ draw();</script>", "<script>// returns the remaining items unchanged\n</script>",
		"<p>All remaining sections are unchanged since the 2nd edition.</p>", "<p>The remaining chapters are unchanged in this edition.</p>", "<p>The rest of the code has been unchanged since 1998.</p>",
		"<pre><!-- ... existing code ... --></pre>", "<code><!-- ... existing code ... --></code>", "<pre><code>a\n<!-- rest unchanged -->\n</code></pre>", "<pre><!-- unchanged --></pre>",
		"<!-- not modified by the theme script -->\n<div>x</div>", "<!-- no changes on hover -->\n<div>x</div>", "<!-- continues on scroll -->\n<div>x</div>",
		"<!-- unchanged --><nav>x</nav>", "<p>x</p><!-- same list, sorted -->",
	}
	for _, part := range honest {
		if got := placeholders(inPage(part)); len(got) != 0 {
			t.Errorf("found in %s: %q", part, got)
		}
	}
}

func TestPlaceholdersAreBounded(t *testing.T) {
	const size = 1 << 17
	for _, unit := range []string{"/*", "`", "'", "//", "=/[", "<!--", "<!-- unchanged -->", "\\"} {
		placeholders("<html><script>" + strings.Repeat(unit, size/len(unit)))
		placeholders("<html>" + strings.Repeat(unit, size/len(unit)))
	}
}

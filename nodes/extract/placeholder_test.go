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
		"<!-- header unchanged -->\n<main>x</main>", "<!-- header unchanged --><main>x</main>", "<!-- 5 more cards -->\n<footer>x</footer>",
		"<div class=card>1</div>\n<!-- 5 more cards -->\n<div class=card>6</div>", "<!-- nav stays as is -->\n<main>x</main>", "<!-- Footer: unchanged -->\n<p>x</p>",
		"<!-- hero section: same as before -->\n<p>x</p>", "<!-- sections 2-4 unchanged -->\n<p>x</p>", "<!-- section 3: no changes -->\n<p>x</p>",
		"<!-- 3 similar cards follow -->\n<p>x</p>", "<!-- more cards... -->\n<p>x</p>", "<!-- ...more cards... -->\n<p>x</p>", "<!-- + 4 more items -->\n<p>x</p>",
		"<!-- and 12 more rows -->\n<p>x</p>", "<!-- remaining 6 cards -->\n<p>x</p>", "<!-- cards 4-9 go here -->\n<p>x</p>", "<!-- cards 4 through 9 (same markup) -->\n<p>x</p>",
		"<!-- repeat the card 5 times -->\n<p>x</p>", "<!-- KEEP EXISTING FOOTER -->", "<!-- keep existing nav -->\n<p>x</p>", "<!-- footer as in v1 -->\n<p>x</p>",
		"<!-- footer as before -->", "<!-- same footer -->", "<!-- same footer as before --><p>x</p>", "<!-- see previous version for the footer -->", "<!-- unchanged: footer, nav -->",
		"<!-- [header unchanged] -->\n<p>x</p>", "<!-- HEADER UNCHANGED -->\n<p>x</p>", "<!-- ===== HEADER (unchanged) ===== -->\n\n<p>x</p>", "<!-- content removed for brevity -->",
		"<!-- shortened for brevity -->", "<!-- truncated -->", "<!-- snipped -->", "<!-- cut here -->", "<!-- abbreviated -->", "<!-- full content omitted -->",
		"<!-- code omitted -->", "<!-- etc -->", "<!-- and so on -->", "<!-- continues as before -->", "<!-- continue as before -->", "<!-- as previously -->", "<!-- no change -->",
		"<style>/* unchanged */</style>", "<style>/* ... */</style>", "<style>/* rest as before */ a{}</style>", "<style>a{}\n/* other styles unchanged */\nb{}</style>",
		"<style>/* existing CSS */</style>", "<style>/* same styles as v1 */</style>", "<style>/* header styles unchanged */\nmain{}</style>",
		"<style>/* keep all previous styles */</style>", "<style>/* (styles unchanged) */</style>", "<style>.a{...}</style>", "<style>.a{ /* same */ }</style>",
		"<script>// unchanged</script>", "<script>/* same script as before */</script>", "<script>// existing code remains</script>", "<script>function a(){ ... }</script>",
		"<script>// ... (rest of script)</script>", "<script>// rest of script unchanged\ninit();</script>", "<script>// previous handlers here\n</script>",
		"<script>/* TODO: implement */</script>", "<script>// implementation goes here\n</script>", "<script>// your code here\n</script>",
		"<script>// keep existing code\ninit()</script>", "<script>// ...existing code...\ninit()</script>", "<p>[remaining content stays the same]</p>",
		"<p>(rest of the article unchanged)</p>", "<section>(unchanged)</section>", "<section>[unchanged]</section>", "<section>Unchanged from previous version.</section>",
		"<section>[same as before]</section>", "<main>[Content here]</main>", "<p>[...]</p><p>[rest omitted]</p>", "<p>... (content continues) ...</p>",
		"<p>&lt;!-- rest unchanged --&gt;</p>", "<div>[5 more cards here]</div>", "<div>... 5 more cards ...</div>", "<div>{{ rest of the page }}</div>",
		"<div>&hellip; rest of page unchanged &hellip;</div>", "<!-- Der Rest bleibt unverändert -->", "<!-- restlicher Inhalt wie gehabt -->", "<!-- Header unverändert -->\n<p>x</p>",
		"<!-- … le reste est inchangé … -->", "<!-- el resto sin cambios -->", "<!-- resto do conteúdo inalterado -->", "<!-- 其余部分保持不变 -->", "<!-- 以下省略 -->", "<!-- (省略) -->",
		"<!-- остальное без изменений -->", "<!-- il resto rimane invariato -->", "<!-- nav unchanged -->\n<div class=wrap><main>x</main></div>",
		"<!-- 4 more items -->\n<li>x</li><li>y</li>",
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
		"<!-- header -->\n<header>x</header>", "<!-- 5 cards -->\n<div>1</div>", "<!-- header: unchanged since v2, see changelog -->\n<header>x</header>",
		"<!-- INTENT: keep the header calm; nothing else moves -->\n<header>x</header>", "<!-- INTENT: the same rhythm as before the fold -->\n<p>x</p>",
		"<!-- more info: https://x.y -->\n<p>x</p>", "<!-- More cards link -->\n<a>x</a>", "<!-- show more button -->\n<button>x</button>",
		"<!-- 3 more things to know -->\n<ul><li>x</li></ul>", "<!-- next 3 rows: pricing -->\n<p>x</p>", "<!-- remaining budget widget -->\n<p>x</p>",
		"<!-- repeat pattern background -->\n<p>x</p>", "<!-- continue button -->\n<button>x</button>", "<!-- footer, same width as header -->\n<footer>x</footer>",
		"<!-- same-origin frame -->\n<iframe></iframe>", "<!-- existing customers -->\n<p>x</p>", "<!-- previous / next links -->\n<nav>x</nav>",
		"<!-- previous section link -->\n<a>x</a>", "<!-- skip to content -->\n<a>x</a>", "<!-- main content -->\n<main>x</main>",
		"<!-- content here is split in two columns -->\n<main>x</main>", "<!-- placeholder colour until the image loads -->\n<img>", "<!-- keep this above the fold -->\n<p>x</p>",
		"<!-- keep the ratio 16:9 -->\n<img>", "<!-- not shown on mobile -->\n<aside>x</aside>", "<!-- hidden until scroll -->\n<aside>x</aside>",
		"<!-- omitted on print -->\n<aside>x</aside>", "<!-- unchanged on hover -->\n<p>x</p>", "<!-- IMPROVEMENTS: header unchanged, cards tightened, footer rebuilt -->\n<p>x</p>",
		"<!-- CHANGES: hero new; nav unchanged -->\n<p>x</p>", "<!-- v3: footer as in v2 but two columns -->\n<footer>x</footer>", "<style>/* header */ header{}</style>",
		"<style>/* same gap as the grid */ .a{gap:1px}</style>", "<style>/* unchanged from the tokens */ :root{--a:1}</style>", "<style>/* rest state */ .a{}</style>",
		"<style>/* resting shadow */ .a{}</style>", "<style>/* more contrast in dark mode */ .a{}</style>", "<style>/* existing brand colours */ .a{}</style>",
		"<style>.a::after{content:'...'}</style>", "<style>/* remaining columns share the space */ .a{}</style>", "<style>/* continued on the next line */ .a{}</style>",
		"<script>// rest args\nfunction f(...rest){}</script>", "<script>const x = {...rest};</script>", "<script>// unchanged if null\nreturn x</script>",
		"<script>// no changes: bail out\nreturn</script>", "<script>// same for touch\nf()</script>", "<script>// add more listeners here when needed\nf()</script>",
		"<script>/* omitted by default */ f()</script>", "<script>// if the rest is the same, skip\nf()</script>", "<script>// keep the previous value\nf()</script>",
		"<script>// TODO(perf): none</script>", "<p>The rest is silence.</p>", "<p>And so on, and so on.</p>", "<p>More below.</p>", "<p>5 more cards</p>", "<p>Show 5 more cards</p>",
		"<button>5 more cards …</button>", "<a>12 more rows</a>", "<p>Everything else was unchanged.</p>", "<p>[1] ibid.</p>", "<p>[sic]</p>", "<p>[laughs]</p>", "<p>(continued)</p>",
		"<p>(omitted)</p>", "<blockquote>“… the rest remains.”</blockquote>", "<p>Header unchanged, footer new: the changelog of 1998.</p>", "<li>unchanged</li>", "<td>no change</td>",
		"<td>(same)</td>", "<td>...</td>", "<p>Content here is king.</p>", "<h2>Your content here matters</h2>", "<label>Your text</label>", "<option>…</option>",
		"<summary>…</summary>", "<p>...and 3 more</p>", "<p>To be continued...</p>", "<p>Sections 3 to 8 remain in force.</p>", "<p>The other sections of the law are unchanged.</p>",
		"<!-- 3 more cards -->\n<div class=\"card a\"><h3 class=card-t>x</h3></div><div class=\"card b\"></div><div class=card></div>", "<!-- 2 more rows -->\n<tr></tr><tr></tr>",
		"<!-- remaining 2 cards -->\n<article class=feature-card></article><article class=feature-card></article>",
		"<!-- hero section: same as before -->\n<section class=hero>x</section>", "<!-- nav unchanged -->\n<div class=wrap><nav>x</nav></div>",
		"<!-- existing header -->\n<div class=\"site-header\">x</div>", "<style>/* header styles unchanged */\n.site-header{}</style>",
		"<!-- same header as before -->\n<header>x</header>",
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

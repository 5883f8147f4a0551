package screenshot

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
)

// handlers are the answers of a server by path.
type handlers map[string]http.HandlerFunc

// answer is a handler that answers at once; head is pairs of names and values.
func answer(body string, head ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(head); i += 2 {
			w.Header().Set(head[i], head[i+1])
		}
		_, _ = w.Write([]byte(body))
	}
}

// late answers after a while that a busy server may take.
func late(body string, head ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		timer := time.NewTimer(700 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
			answer(body, head...)(w, r)
		case <-r.Context().Done():
		}
	}
}

func never(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// c-capture, P-2, P-3: neighbours of the cases, as other pages do the same. What is green when all is well is #0a0.
func TestNeighbours(t *testing.T) {
	const (
		css    = `<style>body{margin:0}.tall{height:1500px}.box{height:100px;background:#0a0}</style>`
		blue   = `<div style="height:1500px;background:#036"></div><div style="height:1500px;background:#0a0">text</div>`
		seen   = `<script>const seen = (f, o) => new IntersectionObserver((all, io) => { if (all.some(e => e.isIntersecting)) { io.disconnect(); f() } }, o).observe(l)</script>`
		full   = `<body style="margin:0;background:#0a0"><h1>text</h1>`
		fields = `<input type="hidden" name="parentElement"><input type="hidden" name="style"><input type="hidden" name="id"><input type="hidden" name="scrollTo"><input type="hidden" name="shadowRoot"><input type="hidden" name="tagName"><input type="hidden" name="scrollHeight"><input type="hidden" name="checkVisibility">`
		half   = `<meta charset="utf-8"><hr style="margin:0;border:0;height:1px;background:#eee">`
	)
	short := m{"idle": "3s", "images": "2s", "command": "30s"}
	green := func(x, y int) []pixel { return []pixel{{x, y, 0, 170, 0}} }
	for _, c := range []struct {
		name, page        string
		more              handlers
		height            int // of the picture; 0 = any
		pixels            []pixel
		blank             bool
		warning           string // part of one
		quiet             bool   // there is none
		waits             m      // short ones, where something never comes
		category, message string
	}{
		// What is loaded late, or on the way down.
		{name: "background asked for when seen", page: css + `<div class="tall"></div><p id="l" style="height:100px;margin:0"></p>` + seen + `<script>seen(() => l.style.background = "url(/red.png)")</script>`,
			more: handlers{"/red.png": late(content(t, "01-lazy-image/red.png"), "Content-Type", "image/png")}, pixels: []pixel{{2, 1502, 200, 0, 0}}},
		{name: "content fetched when seen", page: css + `<div class="tall"></div><p id="l" style="height:100px;margin:0"></p>` + seen + `<script>seen(async () => { await (await fetch("/x")).text(); l.className = "box" })</script>`,
			more: handlers{"/x": late("x")}, pixels: green(600, 1550)},
		{name: "seen only in the middle of the view", page: css + `<div class="tall"></div><div id="l" style="height:100px"></div><div class="tall"></div>` + seen + `<script>seen(() => l.className = "box", {rootMargin: "-40%"})</script>`, pixels: green(600, 1550)},
		{name: "seen only as a whole", page: css + `<div class="tall"></div><div id="l" style="height:650px"></div>` + seen + `<script>seen(() => l.style.background = "#0a0", {threshold: .95})</script>`, pixels: green(600, 2000)},

		{name: "seen only on the line in the middle", page: css + `<style>p{height:90px;margin:0}</style><script>document.write("<p>words</p>".repeat(40)); const io = new IntersectionObserver(all => all.forEach(e => { if (e.isIntersecting) e.target.className = "box" }), {rootMargin: "-50% 0px"}); document.querySelectorAll("p").forEach(e => io.observe(e))</script>`,
			pixels: []pixel{{600, 1170, 0, 170, 0}, {600, 1300, 0, 170, 0}, {600, 1800, 0, 170, 0}, {600, 2430, 0, 170, 0}}},
		{name: "drawn only near the view", page: css + `<style>section{content-visibility:auto;contain-intrinsic-size:300px}</style><script>document.write("<section><div style='height:800px;background:#0a0'>words</div></section>".repeat(5))</script>`,
			height: 4000, pixels: []pixel{{600, 1200, 0, 170, 0}, {600, 2400, 0, 170, 0}, {600, 3900, 0, 170, 0}}},
		{name: "images that nobody comes to see", page: full + `<div style="display:none"><img loading="lazy" src="/red.png"></div><div style="overflow:auto;white-space:nowrap"><img src="/red.png" style="width:9000px;height:9px"><img loading="lazy" src="/red.png?1"></div>`,
			more: handlers{"/red.png": answer(content(t, "01-lazy-image/red.png"), "Content-Type", "image/png")}, pixels: green(900, 600), quiet: true},
		{name: "scrolled to its end at leisure", page: css + `<div class="tall"></div><div id="l" class="box" style="opacity:0">text</div><script>let t; onscroll = () => { clearTimeout(t); t = setTimeout(() => { if (l.getBoundingClientRect().top < innerHeight) l.style.opacity = 1 }, 100) }</script>`, pixels: green(600, 1550)},

		// What moves.
		{name: "drawn frame by frame when seen", page: css + `<div class="tall"></div><div id="l" class="box" style="opacity:0">text</div>` + seen +
			`<script>seen(() => { let s; const f = n => { s ??= n; l.style.opacity = Math.min(1, (n - s) / 900); if (n - s < 900) requestAnimationFrame(f) }; requestAnimationFrame(f) })</script>`, pixels: green(600, 1550)},
		{name: "one transition after the other", page: css + `<style>p{opacity:0;transition:opacity 4s;margin:0}</style><p id="a">text</p><p id="l" class="box">text</p><script>a.ontransitionend = () => l.style.opacity = 1; setTimeout(() => a.style.opacity = 1, 100)</script>`, pixels: green(600, 60)},
		{name: "one animation after the other", page: css + `<style>@keyframes in{from{opacity:0}} .in{animation:in 4s both} .out{opacity:0}</style><p id="a" class="in">text</p><div id="l" class="box out">text</div><script>a.onanimationend = () => l.className = "box in"</script>`, pixels: green(600, 100)},
		{name: "in a closed shadow tree", page: css + `<div id="h"></div><script>h.attachShadow({mode: "closed"}).innerHTML = "<style>@keyframes in{from{opacity:0}} div{height:100px;background:#0a0;animation:in 30s both}</style><div>text</div>"</script>`, pixels: green(600, 50)},
		{name: "in a frame", page: css + `<iframe srcdoc="<style>@keyframes in{from{opacity:0}} body{margin:0} div{height:100px;background:#0a0;animation:in 30s both}</style><div>text</div>" style="border:0;width:900px"></iframe>`, pixels: green(600, 50)},
		{name: "by SVG's own means", page: css + `<svg width="300" height="300"><rect width="300" height="300" fill="#0a0" opacity="0"><animate attributeName="opacity" from="0" to="1" dur="20s" fill="freeze"/></rect></svg>`, pixels: green(100, 100)},
		{name: "tied to coming into view", page: css + `<style>@keyframes in{from{opacity:0}} #l{animation:in linear both;animation-timeline:view();animation-range:entry 0% entry 100%}</style><div class="tall"></div><div id="l" class="box">text</div><div class="tall"></div>`, pixels: green(600, 1550)},
		{name: "tied to coming into view and to leaving it", page: css + `<style>@keyframes io{0%,100%{opacity:0}50%{opacity:1}} @keyframes out{to{opacity:0}} @keyframes both{entry 0%,exit 100%{opacity:0} entry 100%,exit 0%{opacity:1}}
			.box{animation:linear both;animation-timeline:view()} #a{animation-name:io} #b{animation-name:out;animation-range:exit} #c{animation-name:both}</style><div class="tall"></div><div id="a" class="box">text</div><div id="b" class="box"></div><div id="c" class="box"></div><div id="d" style="height:100px;background:#0a0"></div><div class="tall"></div><script>d.animate({opacity: [0, 1, 0]}, {fill: "both", timeline: new ViewTimeline({subject: d})})</script>`,
			pixels: []pixel{{600, 1550, 0, 170, 0}, {600, 1650, 0, 170, 0}, {600, 1750, 0, 170, 0}, {600, 1850, 0, 170, 0}}},
		{name: "a curtain that leaves", page: full + `<div id="c" style="position:fixed;inset:0;background:#fff;transition:opacity 3s"></div><script>onload = () => { c.style.opacity = 0; c.ontransitionend = () => c.remove() }</script>`, pixels: green(900, 500)},

		// What scrolls, and how large it is.
		{name: "a box scrolls", page: `<style>html,body{height:100%;margin:0;overflow:hidden}main{height:100%;overflow:auto}</style><main>` + blue + `</main>`, height: 3000, pixels: green(9, 2900), warning: "not the page scrolls but <main>"},
		{name: "a box scrolls below a header", page: `<style>html,body{height:100%;margin:0}body{display:flex;flex-direction:column;overflow:hidden}header{height:60px;background:#f0f}main{flex:1;overflow:auto}</style><header></header><main>` + blue + `</main>`, height: 3060, pixels: append(green(9, 2900), pixel{9, 30, 255, 0, 255}), warning: "not the page scrolls but <main>"},
		{name: "a box of views that snap", page: `<style>html,body{margin:0}main{height:100vh;overflow-y:scroll;scroll-snap-type:y mandatory}section{height:100vh;scroll-snap-align:start}</style><main><section style="background:#036"></section><section style="background:#0a0"></section></main>`, height: 1440, pixels: append(green(9, 1400), pixel{9, 700, 0, 51, 102}), warning: "<main>"},
		{name: "a fixed box scrolls", page: css + `<div style="position:fixed;inset:0;overflow:auto">` + blue + `</div>`, height: 3000, pixels: green(9, 2900), warning: "<div>"},
		{name: "a box scrolls in a shadow tree", page: `<style>html,body,x-a{display:block;height:100%;margin:0;overflow:hidden}</style><x-a></x-a><script>document.querySelector("x-a").attachShadow({mode: "open"}).innerHTML = '<div style="height:100%;overflow:auto">` + blue + `</div>'</script>`, height: 3000, pixels: green(9, 2900), warning: "not the page scrolls but <div>"},
		{name: "a frame scrolls", page: `<style>html,body{height:100%;margin:0;overflow:hidden}iframe{display:block;border:0;width:100%;height:100%}</style><iframe id="f" src="/inner"></iframe>`, more: handlers{"/inner": answer("<!DOCTYPE html><body style='margin:0'>"+blue, "Content-Type", "text/html")}, height: 3000, pixels: green(9, 2900), warning: "not the page scrolls but <iframe#f>"},
		{name: "a form scrolls whose fields have names of its own", page: `<style>html,body{height:100%;margin:0;overflow:hidden}form,form>div{height:100%;overflow:auto}</style><form>` + fields + `<div>` + blue + `</div></form>`, height: 3000, pixels: green(9, 2900), warning: "not the page scrolls but <div>"},
		{name: "views that snap", page: `<style>html{scroll-snap-type:y mandatory}body{margin:0}section{height:100vh;scroll-snap-align:start}</style><section style="background:#036"></section><section style="background:#fc0"></section><section style="background:#0a0"></section>`, height: 2160, pixels: append(green(9, 2100), pixel{9, 1000, 255, 204, 0})},
		{name: "the body has no height", page: `<style>html,body{height:0;margin:0}</style><div style="position:absolute;top:0;left:0;width:100%;height:2000px;background:#0a0">text</div>`, height: 2000, pixels: green(9, 1900)},

		// What does not come, or is something else.
		{name: "a frame that never comes", waits: short, page: full + `<iframe src="/never"></iframe>`, more: handlers{"/never": never}, pixels: green(900, 600), warning: "waiting for /never"},
		{name: "an image asked for when seen never comes", waits: short, page: css + `<div class="tall"></div><div id="l" class="box">text</div>` + seen + `<script>seen(() => { l.style.backgroundImage = "url(/never)" })</script>`, more: handlers{"/never": never}, pixels: green(600, 1550), warning: "waiting for /never"},
		{name: "the body breaks off", waits: short, more: handlers{"/page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write([]byte("<!DOCTYPE html>" + full))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}}, pixels: green(900, 600), warning: "not loaded: /page: net::ERR"},
		{name: "not what it says", waits: short, more: handlers{"/page": answer("<!DOCTYPE html>"+full, "Content-Type", "text/html", "Content-Encoding", "gzip")}, category: "screenshot_failed", message: "ERR_CONTENT_DECODING_FAILED"},
		{name: "a drawing", more: handlers{"/page": answer(`<svg xmlns="http://www.w3.org/2000/svg" width="900" height="900"><rect width="900" height="900" fill="#0a0"/><text x="9" y="90">words</text></svg>`, "Content-Type", "image/svg+xml")}, pixels: green(600, 600), warning: "the page is image/svg+xml"},
		{name: "data", more: handlers{"/page": answer(`{"error": "not ready"}`, "Content-Type", "application/json")}, warning: "the page is application/json"},

		// What a page does to those who look at it.
		{name: "windows that open windows", page: full + `<a id="a" target="_blank" href="/page">x</a><script>for (let i = 0; i < 20; i++) window.open("/page"); setInterval(() => { window.open("/page"); a.click() }, 20)</script>`, pixels: green(900, 600)},
		{name: "leads on before it has a body", page: `<script>location.replace("/page?" + Math.random())</script>` + full, category: "screenshot_failed", message: "leads on"},
		{name: "names of the document's own", page: full + `<img name="body"><img name="fonts"><img name="images"><img name="getAnimations"><form name="scrollingElement"></form><form name="querySelectorAll"></form><img name="adoptedStyleSheets"><img name="title"><img name="createTreeWalker">`, pixels: green(900, 600)},
		{name: "never at rest", page: full + `<p id="p"></p><script>setInterval(() => p.textContent = Math.random(), 20)</script>`, pixels: green(900, 600), warning: "goes on changing"},
		{name: "a huge document", page: full + `<script>const f = document.createDocumentFragment(); for (let i = 0; i < 1e5; i++) f.append(document.createElement("i")); document.body.append(f)</script>`, pixels: green(900, 600)},

		// Blank or not.
		{name: "nearly white on white", page: `<p style="color:#fefefe">words</p>`, blank: true, warning: "blank"},
		{name: "nearly transparent", page: `<body style="opacity:.01"><p>words</p><hr>`, blank: true, warning: "blank"},
		{name: "cut away", page: half + `<p style="clip-path:inset(100%)">words</p>`, blank: true, warning: "blank"},
		{name: "filtered away", page: half + `<div style="filter:opacity(0)"><p>words</p></div>`, blank: true, warning: "blank"},
		{name: "filled with nothing", page: half + `<p style="-webkit-text-fill-color:color-mix(in srgb,red 0%,transparent)">words</p>`, blank: true, warning: "blank"},
		{name: "covered", page: `<p>words</p><div style="position:fixed;inset:0;background:#fff"></div>`, blank: true, warning: "blank"},
		{name: "words in a frame", page: `<iframe src="/inner" style="border:0"></iframe>`, more: handlers{"/inner": answer("<!DOCTYPE html><p>words</p>", "Content-Type", "text/html")}},
		{name: "words in a field", page: `<input value="words" style="border:0">`},
		{name: "words in a style sheet", page: `<style>p::before{content:"words"}</style><p></p>`},
		{name: "words in a closed shadow tree", page: `<div id="h"></div><script>h.attachShadow({mode: "closed"}).innerHTML = "words"</script>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				f := c.more[r.URL.Path]
				if f == nil && r.URL.Path == "/page" {
					f = answer("<!DOCTYPE html><html>"+c.page, "Content-Type", "text/html; charset=utf-8")
				}
				if f == nil {
					f = http.NotFound
				}
				f(w, r)
			}))
			t.Cleanup(s.Close)
			waits := c.waits
			if waits == nil { // it comes to rest, on a slow machine as well
				waits = m{"idle": "1m", "images": "1m", "command": "1m"}
			}
			res, h, err := shoot(t, nil, m{"page": m{"url": s.URL + "/page"}, "waits": waits})
			if nodetest.Category(err) != c.category {
				t.Fatalf("error %v, want category %q", err, c.category)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.message) {
					t.Errorf("error %v, want %q", err, c.message)
				}
				return
			}
			img := picture(t, h, "full-1280x720.png")
			if got := img.Bounds().Dy(); c.height != 0 && got != c.height {
				t.Errorf("the picture is %d px tall, want %d", got, c.height)
			}
			for _, p := range c.pixels {
				p.check(t, img)
			}
			if got := manifestOf(t, h).Viewports[0].Shots[0]; len(c.pixels) == 0 && got.Blank != c.blank {
				t.Errorf("blank is %v: %d colours, %d characters", got.Blank, got.Colours, got.Text)
			}
			if all := strings.Join(res.Warnings, "\n"); !strings.Contains(all, c.warning) || c.quiet && all != "" {
				t.Errorf("warnings %q, want %q", all, c.warning)
			}
		})
	}
}

package specs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onSmallPages puts pages one after the other in the place of the one that is there, and notes a 1 for each that a check
// lets through, and leaves as it was.
const onSmallPages = `async (args, note) => {
	const check = async note => (
%s
	);
	const state = () => [scrollY, document.adoptedStyleSheets.length, document.documentElement.outerHTML].join();
	let passed = '';
	for (const page of args.pages) {
		document.documentElement.replaceWith(new DOMParser().parseFromString(page, 'text/html').documentElement);
		performance.clearResourceTimings();
		scrollTo(0, 0);
		await document.fonts.ready;
		const before = state(), value = await check(() => {}).catch(e => e);
		passed += value === true && state() === before ? 1 : 0;
	}
	note(passed);
	return true;
}`

// P-5: a page on this side of each bound passes, one on the other side does not; what hides a flaw, and what only looks
// like one, is tried where the page holds nothing else.
func TestGatesHoldTheirBounds(t *testing.T) {
	t.Parallel()
	chapter := func(content string) string { return `<section class="chapter" id="a">` + content + `</section>` }
	box := func(style string) string { return `<div style="` + style + `"></div>` }
	inside := func(outer, style string) string {
		return `<div style="width:100px;height:50px;` + outer + `"><p style="margin:0;line-height:0"><i style="display:inline-block;vertical-align:top;width:9px;height:9px;` + style + `"></i></p></div>`
	}
	// text is a chapter with so many letters that are seen, and so many that are not.
	text := func(seen, hidden int) string {
		return chapter(`<p style="margin:2000px 700px;width:600px;word-break:break-all">` + strings.Repeat("x", seen) + `</p><p hidden>` + strings.Repeat("x", hidden) + `</p>`)
	}
	const head, lead = `<div class="chapter__head"><h2>x</h2></div>`, `<p class="lead">x</p>`
	const over = "position:fixed;inset:0;"
	const drawing = `<figure><svg aria-label="eleven let."><path/></svg><figcaption>Text</figcaption></figure>`
	cases := []struct {
		gate       string
		width      int
		pass, fail []string
	}{
		{"A-03", 1440, []string{
			text(1001, 0), text(1900, 100), text(1001, 0) + box(over), text(1001, 0) + box(over+"background:rgb(0 0 0 / .49)"), text(1001, 0) + box(over+"background:red;opacity:0"),
			`<style>div::before { background: red }</style>` + text(1001, 0) + box(over),
		}, []string{
			text(1000, 0), text(1899, 101), text(1001, 0) + box(over+"background:rgb(0 0 0 / .5)"), text(1001, 0) + box(over+"background:red;pointer-events:none"), text(1001, 0) + box(over+"background:red;content:none"),
			text(1001, 0) + box(over+"background:url(data:,)"), text(1001, 0) + `<img alt="" style="width:100%;height:100%;` + over + `">`,
			`<style>div::before { content: ""; ` + over + `background: red }</style>` + text(1001, 0) + box(over),
			`<style>div::after { content: ""; ` + over + `background: red }</style>` + text(1001, 0) + box(over),
			`<style>p { opacity: 0 }</style>` + text(1001, 0), `<style>p { visibility: hidden }</style>` + text(1001, 0), `<style>p { position: absolute; left: -9999px }</style>` + text(1001, 0), `<style>p { clip-path: inset(100%) }</style>` + text(1001, 0),
			`<style>.chapter { height: 0; overflow: clip }</style>` + text(1001, 0),
		}},
		{"GR-01", 1440, []string{`<p class="page" style="width:940px">`, `<p class="page" style="width:960px">`}, []string{`<p class="page" style="width:939px">`, `<p class="page" style="width:961px">`}},
		{"GR-01", 960, nil, []string{`<p class="page" style="width:900px">`}},
		{"GR-01", 959, []string{`<p class="page" style="width:900px">`}, nil},
		{"GR-01", 768, []string{`<p class="page" style="width:577px">`, `<p class="page" style="width:768px">`}, []string{`<p class="page" style="width:576px">`, `<p class="page" style="width:769px">`}},
		{"GR-02", 1440, []string{`<p>x`, `<p>x<p style="font-size:0" hidden>x`, `<p>x<p style="font-size:0">.`, `<p style="font-size:1px">i`}, []string{
			``, `<p style="font-size:0">x`, `<p>x<p style="font-size:0">x<p>x`, `<style>@font-face { font-family: F; src: url(data:font/woff2,) }</style><p style="font-family:F">x`,
		}},
		{"GR-03", 1440, []string{
			`<p style="color:#777;background:rgb(42 32 24 / 3%)">x`, `<p style="border:0 solid blue">x`, `<p style="border:9px none blue">x`, `<p style="outline:9px none blue">x`, `<p style="text-decoration-color:blue">x`,
			`<style>p::before { color: blue }</style><p>x`, `<svg fill="none"></svg>`, `<p style="background:rgb(0 0 255 / 0)">x`,
		}, []string{
			`<p style="color:rgb(200 100 150)">x`, `<p style="color:rgb(100 200 50)">x`, `<p style="background:oklch(40% .1 250)">x`, `<p style="background:linear-gradient(red,blue)">x`, `<p style="box-shadow:0 0 1px blue">x`,
			`<p style="text-shadow:0 0 1px blue">x`, `<p style="filter:drop-shadow(0 0 1px blue)">x`, `<p style="border-top:1px solid blue">x`, `<p style="border-right:1px solid blue">x`, `<p style="border-bottom:1px solid blue">x`,
			`<p style="border-left:1px solid blue">x`, `<p style="outline:1px solid blue">x`, `<p style="column-rule:1px solid blue">x`, `<p style="text-decoration:underline blue">x`, `<p style="-webkit-text-fill-color:blue">x`,
			`<svg fill="blue"></svg>`, `<svg stroke="blue"></svg>`, `<svg stop-color="blue"></svg>`, `<style>p::before { content: "x"; color: blue }</style><p>x`, `<style>p::after { content: "x"; color: blue }</style><p>x`,
			`<style>li::marker { color: blue }</style><li>x`, `<style>p::first-letter { color: blue }</style><p>x`, `<style>p::first-line { color: blue }</style><p>x`, `<html style="background:blue">`,
		}},
		{"GR-04", 1440, []string{`<h1>Abc</h1>`}, []string{``, `<h1>Ab</h1>`, `<h1>Abc</h1><h1>Abc</h1>`, `<h1 style="opacity:0">Abc</h1>`, `<h1 style="visibility:hidden">Abc</h1>`, `<h1 hidden>Abc</h1>`}},
		{"GR-05", 1440, []string{`<h1>x</h1>`, `<h1>x</h1><h2>x</h2><h3>x</h3><h2>x</h2><h1>x</h1>`}, []string{``, `<h2>x</h2>`, `<h1>x</h1><h3>x</h3>`}},
		{"GR-06", 1440, []string{
			``, `<img src="a.png"><svg><use href="#a"/></svg><iframe src="about:blank"></iframe>`, `<img srcset="a.png 1x, b.png 2x">`, `<img src="data:,"><link rel="canonical" href="https://x.example/">`,
			`<style type="off">p { background: url(a.png) } @import "a.css";</style>`,
		}, []string{
			`<img loading="lazy" style="margin-top:99999px" src="https://x.example/a.png">`, `<img loading="lazy" style="margin-top:99999px" srcset="a.png 1x, https://x.example/b.png 2x">`, `<link rel="icon" href="//x.example/a.ico">`,
			`<style type="off">p { background: url( 'https://x.example/a.png') }</style>`, `<style type="off">@import "https://x.example/a.css";</style>`, `<p hidden style="background:url(https://x.example/a.png)">`,
			`<base href="https://x.example/"><img loading="lazy" style="margin-top:99999px" src="a.png">`,
		}},
		{"GR-07", 1440, []string{`<html lang="e"><title>Abcdef</title>`}, []string{`<html lang="e"><title>Abcde</title>`, `<title>Abcdef</title>`}},
		{"GR-08", 1440, []string{chapter(head + lead)}, []string{``, chapter(head), chapter(lead), chapter(head + lead + lead), chapter(head+lead) + chapter(``)}},
		{"GR-09", 1440, []string{
			chapter(`<p style="font-size:16px">x`), chapter(`<p style="font-size:8px;zoom:2">x`), chapter(`<p style="font-size:16px">x<p hidden style="font-size:9px">x`), `<p style="font-size:9px">x<p class="lead" style="font-size:16px">x`,
		}, []string{
			``, chapter(`<p style="font-size:15.9px">x`), chapter(`<p style="font-size:16px;zoom:.9">x`), chapter(`<p style="font-size:16px;transform:scale(.9)">x`), chapter(`<p style="font-size:16px">x<ol style="font-size:15px"><li>x`),
		}},
		{"GR-10", 1440, []string{
			`<p style="margin:0">x`, box("width:1432px;height:1px"), `<p style="position:fixed;right:0">x`, `<p style="position:fixed;right:-.9px">x`, `<p style="position:fixed;left:0">x`, `<p style="position:fixed;left:-.9px">x`, `<p style="position:fixed;right:1440px">x`,
			`<p style="position:fixed;right:-9px;visibility:hidden">x`, `<pre style="overflow:auto">` + strings.Repeat("x", 999), `<p style="position:absolute;left:-9999px">x`,
		}, []string{
			box("width:1433px;height:1px"), `<p style="position:fixed;right:-1px">x`, `<p style="position:fixed;left:-1px">x`, `<p style="position:fixed;right:1439px">x`, `<p style="position:fixed;right:-9px;visibility:hidden">x<p style="position:fixed;right:-9px">x`,
		}},
		{"GR-11", 1440, []string{
			`<p style="color:#767676">x`, `<p style="color:blue">x`, `<p style="background:#000;color:#fff">x`, `<p style="background:#000;color:#757575">x`, `<p style="opacity:.6">x`, `<p style="background:rgb(0 0 0 / .6);color:#fff">x`,
			`<div style="background:#000"><p style="color:#fff;opacity:.5">x`, `<p>x<p style="color:#eee">1`, `<p>x<p hidden style="color:#eee">x`, `<p>x<svg style="color:#eee"><text>x</text></svg>`, `<html style="background:#000;color:#fff">x`,
		}, []string{
			``, `<p style="color:#777">x`, `<p style="background:#000;color:#747474">x`, `<p style="opacity:.5">x`, `<p style="background:rgb(0 0 0 / .5);color:#fff">x`, `<div style="opacity:.5"><p>x`, `<p style="color:rgb(0 0 0 / .5)">x`,
			`<p style="-webkit-text-fill-color:#eee">x`, `<p>x <b style="color:#eee">x`, `<div style="background:#000;opacity:.5"><p style="color:#fff">x`, `<blockquote style="color:#eee">x`,
		}},
		{"GR-13", 1440, []string{
			chapter(`<p style="font-size:16px"><i style="display:inline-block;width:648px">x`), chapter(`<p style="font-size:16px">x`), chapter(`<p style="font-size:16px;zoom:.5"><i style="display:inline-block;width:648px">x`),
		}, []string{
			``, chapter(`<p style="font-size:16px"><i style="display:inline-block;width:649px">x`), chapter(`<p style="font-size:16px;zoom:.5"><i style="display:inline-block;width:650px">x`),
		}},
		{"GR-14", 1440, []string{chapter(`<p style="font-size:100px;line-height:1.345">x`)}, []string{``, chapter(`<p style="font-size:100px;line-height:1.34">x`), chapter(`<p style="font-size:100px;line-height:134px">x`), chapter(`<p>x`)}},
		{"GR-15", 1440, []string{
			chapter(`<p>x</p><h3 style="margin:17px 0 16px">x</h3><p style="margin:0">x`), chapter(`<h3>x</h3>`), chapter(`<h4 style="margin:0 0 17px">x</h4><h3 style="margin:0 0 16px">x</h3><p style="margin:0">x`),
		}, []string{
			chapter(`<p>x</p><h3 style="margin:16px 0">x</h3><p style="margin:0">x`), chapter(`<p>x</p><h3 style="margin:17px 0 16px">x</h3><p style="margin:17px">x`),
		}},
		{"GR-16", 1440, []string{chapter(``), chapter(``) + chapter(``)}, []string{``, chapter(``) + `<p class="chapter" style="padding-bottom:1px">`, chapter(``) + `<p class="chapter" style="padding-top:1px">`}},
		{"GR-17", 1440, []string{`<p style="background:url(data:,)">`}, []string{`<p style="background:linear-gradient(red,red)">`, `<style>p::after { content: ""; background: conic-gradient(red, red) }</style><p>`}},
		{"GR-18", 1440, []string{
			inside("overflow:hidden", "width:100.9px;height:50.9px"), inside("overflow:hidden", "margin:-.9px"), inside("overflow-x:clip", "height:99px"), inside("overflow-y:clip", "width:999px"), inside("overflow:auto", "width:999px;height:999px"),
			inside("overflow:visible", "width:999px;height:999px"), inside("overflow:hidden;visibility:hidden", "width:999px"), `<div style="overflow:hidden;height:9px"><div style="overflow-y:auto;height:9px"><p style="margin:0">x<br>x`,
			`<div style="overflow:hidden;height:9px"><p hidden>x`,
		}, []string{
			inside("overflow:hidden", "width:101px"), inside("overflow:hidden", "height:51px"), inside("overflow:hidden", "margin-left:-1px"), inside("overflow:hidden", "margin-top:-1px"), `<p style="overflow:clip;height:9px;margin:0">x<br>x`,
		}},
		{"GR-19", 1440, []string{`x`}, []string{`Seamless`}},
		{"GR-20", 1440, []string{`<p>x</p><p><img></p>`}, []string{`<p> </p>`}},
		{"GR-21", 1440, []string{`<p id="a"><p id="b">`}, []string{`<p id="a"><p id="a">`}},
		{"GR-22", 1440, []string{`<a href="#top">x</a><a href="#%61">x</a><p id="a">`, `<a href="b">x</a>`}, []string{`<a href="#b">x</a><p id="a">`}},
		{"GR-23", 1440, []string{chapter(drawing), chapter(`<figure><svg height="1"><path/></svg></figure>`)}, []string{
			``, chapter(drawing) + chapter(``), chapter(`<figure><svg height="0"><path/></svg></figure>`), chapter(`<figure><svg></svg></figure>`), chapter(`<svg><path/></svg>`),
		}},
		{"GR-24", 1440, []string{chapter(`<table class="ledger"><tr>`)}, []string{``, chapter(`<table class="ledger"><tr></table>`) + chapter(`<table><tr></table>`)}},
		{"GR-25", 1440, []string{chapter(`<p class="pull">`)}, []string{chapter(`<p class="pull"><p class="pull">`)}},
		{"GR-26", 1440, []string{chapter(``) + `<p class="toc"><a href="#a">`}, []string{``, chapter(``) + `<a href="#a">`, `<p class="chapter"><p class="toc"><a href="#">`}},
		{"GR-44", 1440, []string{
			`<body style="margin:0">` + box("height:1800px") + `<footer>x</footer>` + box("height:1800px"), `<body style="margin:0">` + box("height:1700px") + `<footer>x</footer>` + box("height:1700px") + `<footer>x</footer>`,
		}, []string{
			`<body style="margin:0">` + box("height:1801px") + `<footer>x</footer>`, `<body style="margin:0"><footer>x</footer>` + box("height:1801px"),
		}},
		{"GR-45", 1440, []string{drawing}, []string{strings.Replace(drawing, "let.", "let", 1), drawing + `<figure><svg></svg></figure>`}},
		{"GR-46", 1440, []string{drawing}, []string{drawing + `<figure>x</figure>`}},
		{"GR-60", 768, []string{`<p class="toc"><a style="display:block;width:18px;height:18px">`}, []string{``, `<p class="toc"><a style="display:block;width:17.9px;height:18px">`, `<p class="toc"><a style="display:block;width:18px;height:17.9px">`}},
		{"GR-61", 1440, []string{``}, nil},
		{"GR-63", 1440, []string{`<h1 style="position:absolute;top:0;height:900px;margin:0">x</h1><p class="toc"><a>x`}, []string{
			`<h1 style="position:absolute;top:-1px;margin:0">x</h1><p class="toc"><a>x`, `<h1 style="position:absolute;top:0;height:901px;margin:0">x</h1><p class="toc"><a>x`, `<h1>x</h1><p class="toc" style="margin-top:900px"><a>x`, `<h1 style="opacity:0">x</h1><p class="toc"><a>x`,
		}},
	}
	var checks []any
	for i, c := range cases {
		code, err := os.ReadFile(filepath.Join(corpus, "gates", c.gate+".js"))
		if err != nil {
			t.Fatal(err)
		}
		checks = append(checks, map[string]any{
			"name": fmt.Sprintf("%s.%d", c.gate, i), "class": "small", "js": fmt.Sprintf(onSmallPages, code), "timeout": "1m",
			"args": map[string]any{"pages": slices.Concat(c.pass, c.fail)}, "viewports": []any{map[string]any{"width": c.width, "height": 900}},
		})
	}
	settings, passed := gateSettings(t), map[string]string{}
	settings["checks"], settings["waits"] = checks, map[string]any{"command": "2m", "viewport": "20m", "node": "20m"}
	delete(settings, "repeat")
	for _, c := range checked(t, "<!DOCTYPE html><p>Text", settings) {
		passed[c.Name] = c.Reason
		switch c.Status {
		case "pass":
			passed[c.Name] = c.Results[0].Notes[0]
		case "not-run":
			t.Errorf("%s was not made: %s", c.Name, c.Reason)
		}
	}
	for i, c := range cases {
		got, want := passed[fmt.Sprintf("%s.%d", c.gate, i)], strings.Repeat("1", len(c.pass))+strings.Repeat("0", len(c.fail))
		if got != want {
			t.Errorf("%s at %d: passed %s, want %s", c.gate, c.width, got, want)
		}
		for k, page := range slices.Concat(c.pass, c.fail) {
			if len(got) == len(want) && got[k] != want[k] {
				t.Logf("%c: %s", got[k], page)
			}
		}
	}
}

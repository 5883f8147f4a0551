package specs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/gates"
)

// soundPage is a page that every gate lets through.
func soundPage(t *testing.T) string {
	t.Helper()
	style := ""
	for _, name := range []string{"tokens", "components"} {
		b, err := os.ReadFile(filepath.Join(corpus, "context", name+".css"))
		if err != nil {
			t.Fatal(err)
		}
		style += string(b)
	}
	words := strings.Repeat("A run is a list of facts, and what should happen next is derived from them each time somebody asks. ", 4)
	var toc, chapters strings.Builder
	for _, id := range []string{"one", "two"} {
		fmt.Fprintf(&toc, `<li><a href="#%s">Chapter %[1]s</a></li>`, id)
		fmt.Fprintf(&chapters, `<section class="chapter" id="%s"><header class="chapter__head"><span class="chapter__number">1</span><h2>Chapter %[1]s</h2></header>
			<p class="lead">%s</p><div class="cards"><div class="card"><h3>Card</h3><p>%[2]s</p></div></div><h3>More</h3><p>%[2]s</p>
			<figure class="figure"><svg viewBox="0 0 90 9" role="img" aria-label="a line that stands for time"><rect width="90" height="9" fill="#9c3d1e"/></svg><figcaption>Time.</figcaption></figure>
			<table class="ledger"><thead><tr><th>What</th></tr></thead><tbody><tr><td>Facts</td><td>%[2]s</td></tr></tbody></table>
			<div class="note"><p>%[2]s</p></div><p class="pull">Facts are stored.</p></section>`, id, words)
	}
	return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>A sound page</title><style>` + style + `</style></head><body><div class="page">
		<header class="masthead"><h1>A sound page</h1><p>` + words[:90] + `</p></header><nav class="toc"><ol>` + toc.String() + `</ol></nav>` + chapters.String() + `<footer class="colophon">End.</footer></div></body></html>`
}

// A flaw is an edit of the sound page with the gates that have to find it.
type flaw struct{ gates, old, new string }

// styled is a flaw by a further rule of the style sheet.
func styled(gates, rule string) flaw { return flaw{gates, "</style>", rule + "</style>"} }

// added is a flaw by further content before the first chapter.
func added(gates, content string) flaw {
	return flaw{gates, `<section class="chapter" id="one">`, content + `<section class="chapter" id="one">`}
}

// P-5: each named gate finds what it is named for, also where it hides, and stays silent on what only looks like it.
func TestGatesFindFlaws(t *testing.T) {
	for _, c := range []struct {
		name  string
		flaws []flaw
	}{
		{"sound", nil},
		{"looks unsound", []flaw{
			{"", "</title>", `</title><link rel="canonical" href="https://example.org/"><link rel="icon" href="data:,">`},
			styled("", `.card { position: relative } .card::after { content: ""; position: absolute; inset: 0 } .skip { position: absolute; left: -9999px }`),
			styled("", `.lead { color: oklch(25% .03 60) } .toc a { outline: 0 solid blue } .mark { box-shadow: 0 0 2px rgb(42 32 24 / 3%) }`),
			added("", `<a class="skip" href="#top">Skip</a><pre class="shell">dagrun apply `+strings.Repeat("specs/corpus-integration ", 20)+`</pre><p class="mark">Text.</p>`),
			added("", `<img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==">`),
		}},
		{"first", []flaw{
			styled("GR-01 GR-49", `.page { max-width: 900px }`), // right at one width, wrong at the other
			styled("GR-02", `@font-face { font-family: F; src: url(/no.woff2) } h2 { font-family: F, serif }`),
			styled("GR-03", `.card h3 { color: oklch(40% .1 250) }`),
			styled("GR-06", `.masthead { cursor: url(https://cdn.example/x.cur), auto }`),
			styled("GR-11", `.note p { color: rgba(42, 32, 24, .3) }`),
			{"GR-44", "</footer>", `</footer><p style="height:3000px">Text.</p>`},
			added("GR-05 GR-19", `<h4>Seamless</h4>`),
			{"GR-07", `lang="en"`, ``},
			styled("GR-10", `html { overflow-x: clip }`),
			added("", `<p style="position:absolute;left:90vw;white-space:nowrap">A line that leaves the window at its right edge, so that nobody can read all of it.</p>`),
			styled("GR-18 A-03", `.note { height: 20px; overflow: hidden }`),
			styled("GR-17", `body::before { content: ""; background: linear-gradient(#fff, #eee) }`),
			styled("GR-09", `.card p { zoom: .8 }`),
			added("GR-21 GR-22", `<p id="one">Text <a href="#nowhere">here</a>.</p>`),
			{"GR-45", `aria-label="a line that stands for time"`, ``},
			{"GR-08", `<h3>More</h3>`, `<p class="lead">Once more.</p><h3>More</h3>`},
		}},
		{"second", []flaw{
			{"A-03", "<body>", `<body><div style="position:fixed;inset:0;z-index:9;background:#faf5ec;pointer-events:none"></div>`},
			styled("GR-11", `.note { opacity: .4 }`),
			styled("GR-60", `.toc a { display: inline-block; height: 10px; overflow: hidden }`),
			{"GR-24", `<tbody><tr><td>`, `<thead><tr><td>`},
			{"GR-25", `<p class="pull">`, `<p class="pull">Twice.</p><p class="pull">`},
			{"GR-46", `<figcaption>Time.</figcaption>`, ``},
			styled("GR-16", `#two { padding-top: 9rem }`),
			styled("GR-14", `.lead { line-height: 1.1 }`),
			styled("GR-13", `.chapter > .lead { max-width: none; font-size: 16px }`),
			{"GR-23", `<rect width="90" height="9" fill="#9c3d1e"/>`, ``},
			{"GR-26", `<a href="#two">`, `<a href="#one">`},
			styled("GR-63", `.masthead { padding-top: 60rem }`),
			styled("GR-15", `.chapter > h3 { margin: .2rem 0 2rem }`),
			// A page cannot talk itself out of it.
			{"GR-20", "</head>", `<script>Array.prototype.every = () => true; Array.prototype.some = () => false; Document.prototype.querySelectorAll = () => []; window.getComputedStyle = () => ({}); window.Promise = null</script></head>`},
			added("", `<p></p>`),
			{"GR-04", "</h1>", `</h1><h1>Again</h1>`},
		}},
		{"nothing in it", []flaw{
			{"A-03 GR-08 GR-09 GR-13 GR-14 GR-16 GR-23 GR-24 GR-26", "</head>", `</head><!--`},
			{"GR-01 GR-04 GR-11 GR-60 GR-63 GR-02 GR-05", "</body>", `--></body>`},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			page, want := soundPage(t), []string{}
			for _, f := range c.flaws {
				after := strings.Replace(page, f.old, f.new, 1)
				if after == page {
					t.Fatalf("the edit for %q changed nothing", f.gates)
				}
				page = after
				want = append(want, strings.Fields(f.gates)...)
			}
			slices.Sort(want)
			want = slices.Compact(want)
			got := failedGates(t, page)
			names := slices.Sorted(maps.Keys(got))
			if !slices.Equal(names, want) {
				t.Errorf("failed %v, want %v", names, want)
				for name, reason := range got {
					t.Logf("%s: %s", name, reason)
				}
			}
		})
	}
}

// failedGates makes the checks in the page, and the checks of checks, as the first cycle does. It returns those that
// did not pass, with their reasons.
func failedGates(t *testing.T, page string) map[string]string {
	t.Helper()
	settings, failed := gateSettings(t), map[string]string{}
	settings["checks"] = slices.DeleteFunc(settings["checks"].([]any), func(c any) bool {
		check := c.(map[string]any)
		return check["file"] == nil && check["meta"] == nil
	})
	for _, c := range checked(t, page, settings) {
		if c.Status != "pass" {
			failed[c.Name] = fmt.Sprint(c.Reason, " ", c.Results)
		}
	}
	return failed
}

// gateSettings are those of the gates of the first cycle, without a verdict.
func gateSettings(t *testing.T) (settings map[string]any) {
	t.Helper()
	if err := json.Unmarshal(node(t, basePlan(t).Plan, h(1, "gates")).With, &settings); err != nil {
		t.Fatal(err)
	}
	settings["verdict"] = map[string]any{"rules": []any{}, "else": "GO"}
	delete(settings, "to")
	return settings
}

// A gateResult is what became of a check.
type gateResult struct {
	Name, Status, Reason string
	Results              []struct{ Notes []string }
}

// checked makes the checks of the settings in the page.
func checked(t *testing.T, page string, settings map[string]any) []gateResult {
	t.Helper()
	with, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	var kept bytes.Buffer
	_, err = gates.Kind.Run(t.Context(), &nodes.Task{
		With: with, SpecDir: corpus, Scratch: t.TempDir(), Out: t.TempDir(), Grace: time.Second,
		File:     func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(corpus, name)) },
		Artifact: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(page)), nil },
		Keep:     func(string) (io.WriteCloser, error) { return inMemory{&kept}, nil },
		Emit:     func(string, any) error { return nil },
		Warn:     func(string) {}, Beat: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Checks []gateResult }
	if err := json.Unmarshal(kept.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	return report.Checks
}

// inMemory is a file that is kept in memory.
type inMemory struct{ *bytes.Buffer }

func (inMemory) Close() error { return nil }

package screenshot

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes/internal/browser"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // they wait more than they compute
	os.Exit(m.Run())
}

// page is a still page of any height with a text and a hundred lines.
func page(height int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>page</title><style>body{margin:0;height:%dpx;background:linear-gradient(#fff,#8ac)}h1,p{margin:0 40px}</style><h1>Heading</h1>`, height)
	for i := range height / 60 {
		fmt.Fprintf(&b, "<p style='position:absolute;top:%dpx'>Line %d of the page, with words in it.</p>", i*60, i)
	}
	return b.String()
}

var threeViews = []m{{"width": 1440, "height": 900}, {"width": 768, "height": 1024}, {"width": 375, "height": 812}}

// P-2: names, numbers and order of the pictures; the archive holds what the folder holds.
func TestPictures(t *testing.T) {
	t.Parallel()
	task, h := nodetest.New(t, "screenshot", m{
		"page": m{"artifact": "out/artifact.html"}, "assets": []m{{"file": "style/base.css", "as": "out/base.css"}}, "viewports": threeViews,
		"to": "pictures/round.zip", "manifest": "round.json",
	})
	const height = 6000
	h.Artifacts["out/artifact.html"] = page(height) + `<link rel="stylesheet" href="base.css">`
	h.Files["style/base.css"] = "h1{color:red}"
	res, err := Kind.Run(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	steps := 0
	for _, v := range []struct {
		size string
		step int // 0.8 of the height, rounded down
	}{{"1440x900", 720}, {"768x1024", 819}, {"375x812", 649}} {
		want = append(want, "viewport-"+v.size+".png", "full-"+v.size+".png")
		for n := 1; n <= (height+v.step-1)/v.step; n++ {
			want = append(want, fmt.Sprintf("scroll-%s-step%d.png", v.size, n))
			steps++
		}
	}
	if steps != 27 {
		t.Errorf("%d scroll pictures, want 27", steps)
	}
	var got []string
	for _, a := range manifestOf(t, h).Viewports {
		for _, s := range a.Shots {
			got = append(got, s.Name)
			img := picture(t, h, s.Name)
			if size := img.Bounds().Size(); size.X != a.View.Width || s.Type == "full" && size.Y != height || s.Type != "full" && size.Y != a.View.Height {
				t.Errorf("%s is %v", s.Name, size)
			}
			if s.Blank || s.Text == 0 || s.Colours < 10 {
				t.Errorf("%s: blank %v, %d characters, %d colours", s.Name, s.Blank, s.Text, s.Colours)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("pictures %v, want %v", got, want)
	}
	if res.Values["shots"] != len(want) || res.Values["blanks"] != 0 || res.Values["degraded"] != false || res.Values["dpr"] != 1.0 || len(res.Warnings) != 0 {
		t.Errorf("values %v, warnings %q", res.Values, res.Warnings)
	}
	last := manifestOf(t, h).Viewports[0].Shots
	if y := last[len(last)-1].Y; y != height-900 {
		t.Errorf("the last scroll picture begins at %d, want %d: the bottom of the page", y, height-900)
	}
	archive := nodetest.Stage(t, task, res, "pictures/round.zip")
	z, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	if len(z.File) != len(want)+1 || z.File[0].Name != manifestName {
		t.Errorf("the archive holds %d files, want %d", len(z.File), len(want)+1)
	}
	if nodetest.Stage(t, task, res, "round.json") != h.Kept[manifestName] {
		t.Error("the manifest as an artifact is another one")
	}
}

// P-2: a page that does not change gives the same bytes again, alone and with others beside it.
func TestSamePageSameBytes(t *testing.T) {
	t.Parallel()
	const height, beside = 2000, 4
	once := func() string {
		task, h := nodetest.New(t, "screenshot", m{"page": m{"artifact": "p.html"}, "viewports": threeViews[1:], "to": "x.zip"})
		h.Artifacts["p.html"] = page(height)
		res, err := Kind.Run(t.Context(), task)
		if err != nil {
			t.Error(err)
			return ""
		}
		return nodetest.Stage(t, task, res, "x.zip")
	}
	first := once()
	var wg sync.WaitGroup
	for range beside {
		wg.Go(func() {
			if again := once(); again != first {
				t.Errorf("the archive differs (%d and %d bytes)", len(first), len(again))
			}
		})
	}
	wg.Wait()
}

// P-3: blank goes by the pixels and by the text that is visible, not by the size of the file.
func TestBlank(t *testing.T) {
	t.Parallel()
	line := `<hr style="margin:0;border:0;height:1px;background:#eee">`
	for _, c := range []struct {
		name, page string
		blank      bool
	}{
		{"nothing", "", true},
		{"dark, nothing", `<body style="background:#000">`, true},
		{"white on white", `<p style="color:#fff">words that nobody can see</p>`, true},
		{"one pale line", line, true},
		{"transparent text", `<p style="color:transparent">words</p>` + line, true},
		{"opacity", `<p style="opacity:0">words</p>` + line, true},
		{"hidden", `<p style="visibility:hidden">words</p>` + line, true},
		{"outside the view", `<p style="position:absolute;left:-9999px">words</p>` + line, true},
		{"one word", `<p>word</p>`, false},
		{"two colours", `<div style="height:100px;background:#00f"></div>`, false},
		{"a picture", `<svg width="300" height="100"><rect width="300" height="100" fill="red"/></svg>`, false},
		{"a gradient", `<body style="background:linear-gradient(#fff,#eee);height:100vh">`, false},
		{"dark with text", `<body style="background:#010203;color:#0a0"><h1>text</h1>`, false},
		{"text in a shadow tree", `<div id="h"></div><script>h.attachShadow({mode:"open"}).innerHTML="word"</script>`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res, h, err := shoot(t, map[string]string{"page.html": "<!DOCTYPE html>" + c.page}, m{"shots": []string{"viewport"}})
			if err != nil {
				t.Fatal(err)
			}
			s := manifestOf(t, h).Viewports[0].Shots[0]
			if s.Blank != c.blank || (res.Values["maxBlankShare"] == 1.0) != c.blank {
				t.Errorf("blank %v, want %v: %d colours, %d characters", s.Blank, c.blank, s.Colours, s.Text)
			}
		})
	}
}

// P-3: runs and shares of blank pictures are counted for each viewport.
func TestBlankRuns(t *testing.T) {
	a := album{Shots: make([]shot, 10)}
	for _, i := range []int{1, 4, 5, 6, 9} {
		a.Shots[i].Blank = true
	}
	a.count()
	b := album{Shots: []shot{{}, {Blank: true}}, View: browser.Viewport{Width: 1, Height: 2}}
	b.count()
	v := (&manifest{Viewports: []album{a, b}}).values()
	if v["blanks"] != 6 || v["maxConsecutiveBlanks"] != 3 || v["maxBlankShare"] != 0.5 {
		t.Errorf("values %v", v)
	}
}

// What moves is at its end: the ways in which pages bring things in, and those that never end.
func TestAnimations(t *testing.T) {
	t.Parallel()
	const style = `<style>body{margin:0}div{height:100px;background:#0a0}
		@keyframes in{from{opacity:0}to{opacity:1}} @keyframes turn{to{transform:rotate(1turn)}}
		.delayed{animation:in 5s 3s both} .forwards{opacity:0;animation:in 4s forwards} .important{opacity:0;animation:in 4s forwards !important}
		.class{opacity:0;transition:opacity 5s} .class.on{opacity:1} .endless{animation:turn 9s linear infinite}
		.never{opacity:1;animation:in 9s infinite alternate}</style>`
	for i, body := range []string{
		`<div class="delayed"></div>`,
		`<div class="forwards"></div>`,
		`<div class="important"></div>`,
		`<div class="class"></div><script>onload=()=>document.querySelector("div").classList.add("on")</script>`,
		`<div class="endless"></div>`,
		`<div class="never"></div>`,
		`<div></div><script>document.querySelector("div").animate([{opacity:0},{opacity:1}],{duration:9000,fill:"both"})</script>`,
		`<div></div><script>document.querySelector("div").animate([{opacity:0},{opacity:1}],{duration:900,iterations:Infinity})</script>`,
		`<div style="opacity:0" id="d"></div><script>setTimeout(()=>d.animate([{opacity:0},{opacity:1}],{duration:9000,fill:"forwards"}),300)</script>`,
		`<div style="opacity:0;transition:opacity 3s !important" id="d"></div><script>setTimeout(()=>d.style.opacity=1,200)</script>`,
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			_, h, err := shoot(t, map[string]string{"page.html": "<!DOCTYPE html>" + style + body}, m{})
			if err != nil {
				t.Fatal(err)
			}
			pixel{300, 50, 0, 170, 0}.check(t, picture(t, h, "full-1280x720.png"))
		})
	}
}

// Sticky and fixed parts, and parts as tall as the view, stand where a reader meets them.
func TestLayout(t *testing.T) {
	t.Parallel()
	_, h, err := shoot(t, map[string]string{"page.html": `<!DOCTYPE html><style>body{margin:0}
		.hero{height:100vh;background:#036} .stick{position:sticky;top:0;height:50px;background:#f0f} .rest{height:2000px;background:#fc0}
		.foot{position:fixed;bottom:0;height:40px;width:100%;background:#0ff}</style>
		<div class="hero"></div><div class="stick"></div><div class="rest"></div><div class="foot"></div>`}, m{"shots": []string{"full", "scroll"}})
	if err != nil {
		t.Fatal(err)
	}
	img := picture(t, h, "full-1280x720.png")
	if got := img.Bounds().Dy(); got != 2770 {
		t.Errorf("the page is %d px tall, want 2770", got)
	}
	for _, p := range []pixel{{9, 300, 0, 51, 102}, {9, 740, 255, 0, 255}, {9, 780, 255, 204, 0}, {9, 1500, 255, 204, 0}, {9, 2740, 255, 204, 0}} {
		p.check(t, img)
	}
	pixel{9, 10, 255, 0, 255}.check(t, picture(t, h, "scroll-1280x720-step4.png")) // it sticks while scrolling
}

// e-work/15: what the page's own boxes cut off is not silently missing: a warning names the box and how much it hides, and
// the capture is degraded. What folds away on purpose, small boxes and boxes that hold little more than they show are left alone.
func TestCutOffByItsOwnPage(t *testing.T) {
	t.Parallel()
	const part = `<div style="height:100vh;background:#fcc">part</div>`
	for _, tt := range []struct{ name, page, want string }{
		{"deck", `<style>html,body{margin:0;height:100%;overflow:hidden}.w{position:fixed;inset:0;overflow:hidden}</style><div class="w">` +
			part + part + part + `</div>`, "<div.w> cuts off 1440 of its 2160 px; they are on no picture"},
		{"a box that scrolls within the page", `<style>body{margin:0}#log{height:300px;overflow:auto}</style><p>above</p><div id="log">` + part + part +
			`</div><p>below</p>`, "<div#log> cuts off 1140 of its 1440 px; they are on no picture"},
		{"folded", `<div style="max-height:0;overflow:hidden">` + part + `</div><p>text</p>`, ""},
		{"a small list", `<div style="height:60px;width:200px;overflow:auto">` + part + `</div><p>text</p>`, ""},
		{"a little more", `<div style="height:700px;overflow:hidden"><div style="height:760px;background:#cfc">text</div></div>`, ""},
	} {
		res, _, err := shoot(t, map[string]string{"page.html": "<!DOCTYPE html>" + tt.page}, m{"shots": []string{"full"}})
		if err != nil {
			t.Fatal(err)
		}
		cut := slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, "cuts off") })
		told := slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, tt.want) })
		if want := tt.want != ""; cut != want || want && !told || res.Values["degraded"] != want {
			t.Errorf("%s: degraded %v, warnings %q, want %q", tt.name, res.Values["degraded"], res.Warnings, tt.want)
		}
	}
}

func TestLook(t *testing.T) {
	img := image.NewNRGBA(image.Rect(0, 0, 100, 50))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	img.Set(3, 7, color.NRGBA{1, 2, 3, 255})
	for name, i := range map[string]image.Image{"NRGBA": img, "paletted": paletted(img)} {
		var b bytes.Buffer
		if err := png.Encode(&b, i); err != nil {
			t.Fatal(err)
		}
		s, err := look(b.Bytes())
		if err != nil || s.colours != 2 || s.width != 100 || s.height != 50 || s.most != 4999.0/5000 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if _, err := look([]byte("no picture")); err == nil {
		t.Error("no error for what is no picture")
	}
}

func paletted(from image.Image) image.Image {
	p := image.NewPaletted(from.Bounds(), color.Palette{color.White, color.NRGBA{1, 2, 3, 255}})
	p.SetColorIndex(3, 7, 1)
	return p
}

func TestDescribe(t *testing.T) {
	view := `"viewports":[{"width":100,"height":100}]`
	for _, c := range []struct{ with, at string }{
		{`{"page":{"artifact":"a.html"},` + view + `,"to":"x.zip","manifest":"x.json"}`, ""},
		{`{"page":{"url":"http://127.0.0.1:80/"},` + view + `}`, ""},
		{`{` + view + `}`, "page"},
		{`{"page":{},` + view + `}`, "page"},
		{`{"page":{"artifact":"a","file":"b"},` + view + `}`, "page"},
		{`{"page":{"url":"http://example.org/"},` + view + `}`, "page.url"},
		{`{"page":{"url":"file:///etc/passwd"},` + view + `}`, "page.url"},
		{`{"page":{"artifact":"a"}}`, "viewports"},
		{`{"page":{"artifact":"a"},"viewports":[{"width":9,"height":9},{"width":9,"height":9}]}`, "viewports.1"},
		{`{"page":{"artifact":"a"},` + view + `,"assets":[{"file":"x/a"}]}`, "assets.0"},
		{`{"page":{"artifact":"a"},` + view + `,"shots":[]}`, "shots"},
		{`{"page":{"artifact":"a"},` + view + `,"shots":["full","full"]}`, "shots.1"},
		{`{"page":{"artifact":"a"},` + view + `,"to":"x.zip","manifest":"x.zip"}`, "manifest"},
		{`{"page":{"artifact":"a"},` + view + `,"to":"x.tar"}`, "to"},
	} {
		tr, err := Kind.Describe([]byte(c.with))
		if err != nil {
			t.Errorf("%s: %v", c.with, err)
			continue
		}
		at := ""
		if len(tr.Problems) > 0 {
			at = tr.Problems[0].Path
		}
		if at != c.at {
			t.Errorf("%s: problem at %q, want %q: %v", c.with, at, c.at, tr.Problems)
		}
	}
	tr, _ := Kind.Describe([]byte(`{"page":{"artifact":"a.html"},` + view + `,"assets":[{"file":"s.css"}],"to":"x.zip"}`))
	if !slices.Equal(tr.Reads, []string{"a.html"}) || !slices.Equal(tr.Files, []string{"s.css"}) || !slices.Equal(tr.Writes, []string{"x.zip"}) || tr.Effect != "pure" {
		t.Errorf("traits %+v", tr)
	}
}

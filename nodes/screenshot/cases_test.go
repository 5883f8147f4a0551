package screenshot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

const cases = "testdata/c-capture/"

type m = map[string]any

// shoot runs a node over artifacts. Settings that with leaves out are those of the cases: one viewport of
// 1280 x 720, the whole page.
func shoot(t *testing.T, artifacts map[string]string, with m) (*nodes.Result, *nodetest.Host, error) {
	t.Helper()
	common := m{"page": m{"artifact": "page.html"}, "viewports": []m{{"width": 1280, "height": 720}}, "shots": []string{"full"}}
	for name, v := range common {
		if _, given := with[name]; !given {
			with[name] = v
		}
	}
	task, h := nodetest.New(t, "screenshot", with)
	h.Artifacts = artifacts
	if _, err := (Kind).Describe(task.With); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	res, err := Kind.Run(ctx, task)
	if err == nil && res.Survivors != nil {
		t.Errorf("survivors: %v", res.Survivors)
	}
	return res, h, err
}

func content(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(cases + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func picture(t *testing.T, h *nodetest.Host, name string) image.Image {
	t.Helper()
	img, err := png.Decode(strings.NewReader(h.Kept[name]))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return img
}

type pixel struct{ x, y, r, g, b int }

const tolerance = 6 // as the cases say

func (p pixel) check(t *testing.T, img image.Image) {
	t.Helper()
	r, g, b, _ := img.At(p.x, p.y).RGBA()
	off := func(have uint32, want int) bool { d := int(have>>8) - want; return d > tolerance || d < -tolerance }
	if off(r, p.r) || off(g, p.g) || off(b, p.b) {
		t.Errorf("pixel %d,%d is %d,%d,%d, want %d,%d,%d", p.x, p.y, r>>8, g>>8, b>>8, p.r, p.g, p.b)
	}
}

func manifestOf(t *testing.T, h *nodetest.Host) *manifest {
	t.Helper()
	var got manifest
	d := json.NewDecoder(strings.NewReader(h.Kept[manifestName]))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("manifest: %v", err)
	}
	return &got
}

// c-capture: P-2, P-3. Pages that are served by the node itself.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		page          string
		assets        []string
		width, height int // of the picture; 0 = any
		pixels        []pixel
		blank         bool
		errors        int  // on the console
		warns         bool // with a warning
		title         string
	}{
		{page: "01-lazy-image/page.html", assets: []string{"red.png"}, width: 1280, height: 6300, pixels: []pixel{{100, 6100, 200, 0, 0}}},
		{page: "02-reveal-on-scroll/reveal.html", width: 1280, height: 2800, pixels: []pixel{{100, 1300, 0, 170, 0}, {100, 2700, 0, 170, 0}}},
		{page: "02-reveal-on-scroll/smooth.html", pixels: []pixel{{100, 5100, 0, 170, 0}}},
		{page: "04-fixed-header/page.html", width: 1280, height: 3600, pixels: []pixel{{5, 30, 221, 0, 221}, {5, 750, 255, 255, 255}, {5, 1470, 255, 255, 255}}},
		{page: "07-stalled-resources/cdn.html", pixels: []pixel{{1000, 500, 0, 170, 0}}, warns: true},
		{page: "08-busy-and-reloading/reload.html", warns: true},
		{page: "10-blank-page/error.html", blank: true, errors: 1, warns: true},
		{page: "10-blank-page/empty.html", blank: true, warns: true},
		{page: "10-blank-page/dark.html", pixels: []pixel{{1000, 500, 1, 2, 3}}},
		{page: "11-webgl/page.html", pixels: []pixel{{50, 50, 255, 0, 0}}, title: "gl-ok"},
		{page: "13-entry-animations/page.html", pixels: []pixel{{100, 100, 0, 170, 0}, {100, 400, 0, 0, 170}}},
		{page: "16-stale-profile-lock/page.html", width: 1280, height: 2720, pixels: []pixel{{100, 700, 0, 51, 102}, {100, 730, 255, 204, 0}}},
	} {
		t.Run(c.page, func(t *testing.T) {
			t.Parallel()
			artifacts := map[string]string{"page.html": content(t, c.page)}
			var assets []m
			for _, name := range c.assets {
				artifacts[name] = content(t, filepath.Dir(c.page)+"/"+name)
				assets = append(assets, m{"artifact": name})
			}
			with := m{"assets": assets}
			res, h, err := shoot(t, artifacts, with)
			if err != nil {
				t.Fatal(err)
			}
			img := picture(t, h, "full-1280x720.png")
			if size := img.Bounds().Size(); c.width != 0 && (size.X != c.width || size.Y != c.height) {
				t.Errorf("the picture is %v, want %d x %d", size, c.width, c.height)
			}
			for _, p := range c.pixels {
				p.check(t, img)
			}
			album := manifestOf(t, h).Viewports[0]
			if album.Shots[0].Blank != c.blank || (res.Values["blanks"] == 1) != c.blank {
				t.Errorf("blank is %v and %v, want %v", album.Shots[0].Blank, res.Values["blanks"], c.blank)
			}
			if album.ErrorCount != c.errors || res.Values["consoleErrors"] != c.errors {
				t.Errorf("%d console errors, want %d: %q", album.ErrorCount, c.errors, album.Errors)
			}
			if (len(res.Warnings) > 0) != c.warns {
				t.Errorf("warnings %q, want some: %v", res.Warnings, c.warns)
			}
			if c.title != "" && album.Title != c.title {
				t.Errorf("title %q, want %q", album.Title, c.title)
			}
		})
	}
}

// c-capture/05: a tall page is cut into numbered tiles; none repeats another and none is left out.
func TestVeryTall(t *testing.T) {
	t.Parallel()
	const width = 1280
	_, h, err := shoot(t, map[string]string{"page.html": content(t, "05-very-tall/page.html")}, m{"viewports": []m{{"width": width, "height": 720}}})
	if err != nil {
		t.Fatal(err)
	}
	y := 0
	for n := 1; n <= 3; n++ {
		img := picture(t, h, fmt.Sprintf("full-%dx720-tile%d.png", width, n))
		for ty := 250; ty < img.Bounds().Dy(); ty += 500 {
			i := (y + ty) / 500
			pixel{width / 2, ty, (37*i)%200 + 30, (71*i)%200 + 30, (113*i)%200 + 30}.check(t, img)
		}
		y += img.Bounds().Dy()
	}
	if y != 22000 {
		t.Errorf("the tiles are %d px tall together, want 22000", y)
	}
}

// A page over every limit is cut, with a warning.
func TestTooTall(t *testing.T) {
	t.Parallel()
	res, h, err := shoot(t, map[string]string{"page.html": content(t, "05-very-tall/page.html")},
		m{"tile": 1000, "maxTiles": 2, "maxSteps": 2, "shots": []string{"full", "scroll"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, more := h.Kept["full-1280x720-tile3.png"]; more || h.Kept["full-1280x720-tile2.png"] == "" || h.Kept["scroll-1280x720-step2.png"] == "" {
		t.Error("want two tiles and two steps")
	}
	all := strings.Join(res.Warnings, "\n")
	if res.Values["degraded"] != true || !strings.Contains(all, "22000 px tall") || !strings.Contains(all, "2 of 39 steps") {
		t.Errorf("degraded %v, warnings %q", res.Values["degraded"], all)
	}
}

// c-capture/07: what never answers is given up after its own bound.
func TestStalled(t *testing.T) {
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/never") {
			select {
			case <-done:
			case <-r.Context().Done():
			}
			return
		}
		w.Header().Set("Content-Type", "text/html")
		b, _ := os.ReadFile(cases + "07-stalled-resources" + r.URL.Path)
		_, _ = w.Write(b)
	}))
	t.Cleanup(func() { close(done); s.Close() })
	for _, page := range []string{"css.html", "font.html"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			res, h, err := shoot(t, nil, m{"page": m{"url": s.URL + "/" + page}})
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Warnings) == 0 || !strings.Contains(res.Warnings[0], "waits.idle") || res.Values["degraded"] != true {
				t.Errorf("warnings %q, degraded %v", res.Warnings, res.Values["degraded"])
			}
			if a := manifestOf(t, h).Viewports[0]; a.Idle || len(a.Shots) != 1 || strings.Contains(h.Kept[manifestName], s.URL) {
				t.Errorf("manifest %s", h.Kept[manifestName])
			}
		})
	}
}

// c-capture/08: a page that never lets go fails with its own name, and the next one can be looked at.
func TestBusy(t *testing.T) {
	t.Parallel()
	_, h, err := shoot(t, map[string]string{"page.html": content(t, "08-busy-and-reloading/busy.html")}, m{"waits": m{"command": "3s", "idle": "2s"}})
	if nodetest.Category(err) != "page_hang" || !strings.Contains(err.Error(), "1280x720") || strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("error %v, want page_hang", err)
	}
	if len(h.Kept) != 0 {
		t.Errorf("a failed attempt kept %d files", len(h.Kept))
	}
}

// c-capture/14: browsers that do not start, in their own words.
func TestBrowserStartFailures(t *testing.T) {
	for _, c := range []struct{ script, category, message string }{
		{"dies.sh", "config", "Running as root without --no-sandbox is not supported"},
		{"never.sh", "stalled", "waits.launch"},
		{"late.sh", "stalled", "waits.launch"},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), c.script)
			nodetest.Script(t, path, content(t, "14-browser-start-failures/"+c.script))
			with := m{"browser": m{"path": path}}
			if c.category == "stalled" {
				with["waits"] = m{"launch": "2s"}
			}
			_, _, err := shoot(t, map[string]string{"page.html": "x"}, with)
			if nodetest.Category(err) != c.category || !strings.Contains(err.Error(), c.message) {
				t.Errorf("error %v, want %s with %q", err, c.category, c.message)
			}
		})
	}
	if s, err := Kind.Parse(nil); err != nil || s.(*settings).Waits.Launch.D() <= 30*time.Second {
		t.Error("the bound for a start must be over 30 s")
	}
}

// c-capture/16: a lock of a dead browser in the folder where profiles go does not matter.
func TestStaleProfileLock(t *testing.T) {
	t.Parallel()
	task, h := nodetest.New(t, "screenshot", m{"page": m{"artifact": "page.html"}, "viewports": []m{{"width": 1280, "height": 720}}, "shots": []string{"full"}})
	h.Artifacts["page.html"] = content(t, "16-stale-profile-lock/page.html")
	for _, dir := range []string{task.Scratch, task.Scratch + "/profile", task.Scratch + "/browser-1/profile"} {
		if out, err := exec.Command("sh", cases+"16-stale-profile-lock/setup.sh", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if _, err := (Kind).Run(context.Background(), task); err != nil {
		t.Fatal(err)
	}
	// §1 of the measurements: sections as tall as the view are not stretched.
	if size := picture(t, h, "full-1280x720.png").Bounds().Size(); size.Y != 2720 {
		t.Errorf("the page is %d px tall, want 2720", size.Y)
	}
}

// Every case has a test here.
func TestNoCaseForgotten(t *testing.T) {
	source, err := os.ReadFile("cases_test.go")
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(cases + "*")
	if err != nil || len(dirs) == 0 {
		t.Fatal(err, dirs)
	}
	for _, dir := range dirs {
		if name := filepath.Base(dir); !bytes.Contains(source, []byte(name)) {
			t.Errorf("case %s has no test", name)
		}
	}
}

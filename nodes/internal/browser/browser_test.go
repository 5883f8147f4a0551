package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// site answers with pages by path; a handler may be given for others.
func site(t *testing.T, pages map[string]string, handlers map[string]http.HandlerFunc) *httptest.Server {
	t.Helper()
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := handlers[r.URL.Path]; f != nil {
			f(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/never") { // accepted, never answered
			select {
			case <-done:
			case <-r.Context().Done():
			}
			return
		}
		text, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(func() { close(done); s.Close() })
	return s
}

func short() Waits {
	w := defaultWaits()
	s := nodes.Duration(time.Second)
	w.Idle, w.Fonts, w.Images, w.Settle = 2*s, s, s, nodes.Duration(50*time.Millisecond)
	return w
}

// patient is for pages that come to rest: a machine with other work to do may need long for it.
func patient(w *Waits) {
	m := nodes.Duration(time.Minute)
	w.Idle, w.Fonts, w.Images = m, m, m
}

// view looks at an address and returns what is known of it and a picture of the view.
func view(t *testing.T, address string, waits Waits, visit func(p *Page) error) (Record, image.Image, error) {
	t.Helper()
	task, _ := nodetest.New(t, "screenshot", nil)
	set := defaultSettings()
	var rec Record
	var img image.Image
	var browsers []int
	_, survivors, err := Look(context.Background(), task, &Job{
		Source: &Source{Page: &PageSource{URL: address}}, Settings: &set, Waits: &waits, Scale: 1, Viewports: []Viewport{{400, 300}},
		Visit: func(_ int, p *Page) error {
			rec = p.Record()
			browsers = append(browsers, pid(p))
			b, err := p.Picture(nil)
			if err != nil {
				return err
			}
			if img, err = png.Decode(bytes.NewReader(b)); err != nil {
				return err
			}
			if visit != nil {
				return visit(p)
			}
			return nil
		},
	})
	if len(survivors) > 0 {
		t.Errorf("survivors: %v", survivors)
	}
	nothingLeft(t, task.Scratch, browsers...)
	return rec, img, err
}

// nothingLeft fails when a process of one of the browsers is there, or one that works in a folder.
func nothingLeft(t *testing.T, folder string, browsers ...int) {
	t.Helper()
	if list := working(folder, browsers...); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
	if list, _ := filepath.Glob(folder + "/browser-*"); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

// working lists the processes that have a folder in their environment or arguments, or are in the group of
// a browser: its helpers hide the former.
func working(folder string, browsers ...int) []string {
	var list []string
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		stat, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, group, ...
		group, _ := strconv.Atoi(fields[2])
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ"))
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if len(cmd) == 0 { // a zombie, or one whose memory is gone already
			continue
		}
		if slices.Contains(browsers, group) || bytes.Contains(env, []byte(folder)) || bytes.Contains(cmd, []byte(folder)) {
			list = append(list, fmt.Sprintf("%s %.80s", f, bytes.ReplaceAll(cmd, []byte{0}, []byte{' '})))
		}
	}
	return list
}

func pid(p *Page) int { return chromedp.FromContext(p.ctx).Browser.Process().Pid }

const green = `<body style="margin:0;background:#0a0"><h1>text</h1>`

func at(img image.Image, x, y int) string {
	if img == nil {
		return "no picture"
	}
	c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
	return fmt.Sprintf("%02x%02x%02x", c.R, c.G, c.B)
}

// P-2, P-4: what pages do to those who look at them, and what becomes of it.
func TestPages(t *testing.T) {
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	for _, c := range []struct {
		name     string
		page     string
		handler  http.HandlerFunc // of /page instead
		waits    func(w *Waits)
		category string // "" = there is a picture, and it is green
		message  string // part of the error's
		ok       func(r Record) bool
		nothing  bool // the picture need not be green
	}{
		{name: "plain", page: green, waits: patient, ok: func(r Record) bool { return r.Idle && r.Loads == 1 && len(r.Warnings) == 0 && r.URL == "/page" }},
		{name: "redirect", handler: redirect("/green"), ok: func(r Record) bool { return r.URL == "/green" && r.Status == 200 && r.Loads == 1 }},
		{name: "redirect loop", handler: redirect("/page"), category: "screenshot_failed", message: "ERR_TOO_MANY_REDIRECTS"},
		{name: "redirect outside", handler: redirect("http://outside.example/"), category: "screenshot_failed", message: "http://outside.example"},
		{name: "not found", handler: http.NotFound, category: "screenshot_failed", message: "status 404"},
		{name: "server error", handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, category: "screenshot_failed", message: "status 500"},
		{name: "no content", handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, category: "screenshot_failed", message: "no page"},
		{name: "download", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Disposition", "attachment; filename=x.bin")
			_, _ = w.Write([]byte("x"))
		}, category: "screenshot_failed", message: "to be saved"},
		{name: "document never answers", handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			waits: func(w *Waits) { w.Navigate = nodes.Duration(time.Second) }, category: "stalled", message: "waits.navigate"},
		{name: "style sheet never answers", page: `<link rel="stylesheet" href="/never.css">` + green,
			ok: func(r Record) bool {
				return !r.Idle && strings.Contains(strings.Join(r.Cut, " "), "/never.css") && len(r.Warnings) > 0
			}},
		{name: "script never answers", page: `<link rel="stylesheet" href="/never.css"><script>1</script><script src="/never.js"></script>` + green + `<script>document.title="read on"</script>`,
			ok: func(r Record) bool {
				return !r.Idle && r.Title == "read on" && r.Loads == 1 && len(r.Missing) == 0 && strings.Contains(strings.Join(r.Cut, " "), "/never.js")
			}},
		{name: "the document never ends", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<!DOCTYPE html>" + green))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, ok: func(r Record) bool { return !r.Idle && strings.Contains(strings.Join(r.Cut, " "), "stopped") }},
		{name: "streams", page: green + `<script>const bad=()=>document.body.style.background="#f00",x=new XMLHttpRequest();new EventSource("/stream").onerror=bad;
			fetch("/stream").then(r=>r.text()).then(bad,bad);x.open("GET","/never");x.onerror=x.onabort=bad;x.send()</script><img src="/never.png" onerror="bad()">`,
			ok: func(r Record) bool { return !r.Idle && len(r.Missing) == 0 && r.BadImages == 0 }},
		{name: "workers", page: green + `<script>new Worker("/w.js");new SharedWorker("/w.js");new Worker(URL.createObjectURL(new Blob(["for(;;);"])))</script>`,
			waits: patient, ok: func(r Record) bool { return r.Idle && len(r.Warnings) == 0 }},
		{name: "image never answers", page: green + `<img src="/never.png">`, ok: func(r Record) bool { return !r.Idle }},
		{name: "font never answers", page: `<style>@font-face{font-family:F;src:url(/never.woff2)} h1{font-family:F,sans-serif}</style>` + green,
			ok: func(r Record) bool { return !r.Idle && len(r.Warnings) > 0 }},
		{name: "font not found", page: `<style>@font-face{font-family:Fancy;src:url(/no.woff2)} h1{font-family:Fancy,sans-serif}</style>` + green,
			waits: patient, ok: func(r Record) bool { return slices.Equal(r.FailedFonts, []string{"Fancy"}) && r.TextWidth > 0 }},
		{name: "characters without a font", page: green + "<p>Straße, Ωμέγα, Привет \u0378 \u0379</p><p style='display:none'>\u0380</p>",
			waits: patient, ok: func(r Record) bool { return r.Boxes == "\u0378\u0379" && len(r.Warnings) == 1 }},
		{name: "polling", page: green + `<script>setInterval(()=>fetch("/green"),100)</script>`, ok: func(r Record) bool { return !r.Idle }},
		{name: "outside", page: green + `<img src="https://cdn.example.invalid/a.png"><img src="http://127.0.0.2:9/b.png"><iframe src="http://frame.example/"></iframe><script>new WebSocket("ws://socket.example/")</script>`,
			waits: patient, ok: func(r Record) bool {
				want := []string{"http://127.0.0.2:9", "http://frame.example", "https://cdn.example.invalid", "ws://socket.example"}
				slices.Sort(r.Refused)
				return slices.Equal(r.Refused, want)
			}},
		{name: "dialogs", page: green + `<script>alert(1);confirm(2);prompt(3)</script>`, ok: func(r Record) bool { return r.Dialogs == 3 }},
		{name: "endless dialogs", page: green + `<script>for(;;)alert(1)</script>`, category: "page_hang", message: "dialogs"},
		{name: "print", page: green + `<script>print()</script>`},
		{name: "before unload", page: green + `<script>onbeforeunload=e=>{e.preventDefault();return "no"}</script>`},
		{name: "window.close", page: green + `<script>window.close();setTimeout(()=>window.close(),100)</script>`},
		{name: "popup", page: green + `<script>window.open("/green");window.open("http://outside.example/")</script>`},
		{name: "loop in the page", page: green + `<script>onload=()=>setTimeout(()=>{for(;;);},50)</script>`,
			waits: func(w *Waits) { w.Command = nodes.Duration(2 * time.Second) }, category: "page_hang", message: "never ends"},
		{name: "loop while loading", page: green + `<script>for(;;);</script>`,
			waits: func(w *Waits) { w.Command = nodes.Duration(2 * time.Second) }, category: "page_hang"},
		{name: "reloads", page: green + `<script>setTimeout(()=>location.reload(),100)</script>`,
			ok: func(r Record) bool { return r.Loads == 3 && len(r.Warnings) > 0 }},
		{name: "goes to another page", page: `<body><script>setTimeout(()=>location="/green",300)</script>`,
			ok: func(r Record) bool { return r.URL == "/green" && r.Loads == 2 && len(r.Warnings) > 0 }},
		{name: "goes to another page when it is scrolled", page: `<body style="height:2000px"><script>onscroll=()=>location="/green"</script>`,
			ok: func(r Record) bool { return r.URL == "/green" && r.Loads == 2 }},
		{name: "reloads when scrolled", page: green + `<div style="height:2000px"></div><script>onscroll=()=>location.reload()</script>`,
			ok: func(r Record) bool { return r.Loads == 3 && r.Height > 2000 }},
		{name: "goes to what it made", page: `<body><script>setTimeout(()=>location=URL.createObjectURL(new Blob(["` + `<body style=background:#0a0>"],{type:"text/html"})),100)</script>`,
			ok: func(r Record) bool { return r.URL == "blob:" && r.Loads == 2 }},
		{name: "goes away", page: green + `<script>setTimeout(()=>location="http://outside.example/",100)</script>`,
			ok: func(r Record) bool { return r.URL == "/page" && len(r.Refused) == 1 }},
		{name: "meta refresh outside", page: `<meta http-equiv="refresh" content="0;url=http://outside.example/">` + green,
			ok: func(r Record) bool { return r.URL == "/page" && len(r.Refused) == 1 }},
		{name: "goes to nothing", page: green + `<script>setTimeout(()=>location="about:blank",100)</script>`, category: "screenshot_failed", message: "about:blank"},
		{name: "console flood", page: green + `<script>for(let i=0;i<20000;i++)console.error("line "+i)</script>`,
			ok: func(r Record) bool { return r.ErrorCount >= mostMessages && len(r.Errors) == mostNoted }},
		{name: "exception", page: green + `<script>undefined.x</script><script>Promise.reject(new Error("late"))</script>`,
			waits: patient, ok: func(r Record) bool {
				return r.ErrorCount == 2 && strings.Contains(r.Errors[0], "TypeError") && strings.Contains(r.Errors[1], "late")
			}},
		{name: "heap bomb", page: green + `<script>onload=()=>setTimeout(()=>{const a=[];for(;;)a.push(new Array(1e5).fill(Math.random()))},50)</script>`,
			waits: func(w *Waits) { w.Command = nodes.Duration(time.Minute) }, category: "screenshot_failed", message: "crashed"}, // a busy machine is slow to fill its memory
		{name: "buffer bomb", page: green + `<script>const a=[];try{for(let i=0;i<64;i++){const b=new Uint8Array(2**28);b.fill(1);a.push(b)}}catch(e){document.title=e.name}</script>`,
			ok: func(r Record) bool { return r.Title == "RangeError" }},
		{name: "grows while scrolled", page: green + `<div id="b"></div><script>onscroll=()=>{const d=document.createElement("div");d.style.height="1000px";b.append(d)};b.style.height="600px"</script>`,
			ok: func(r Record) bool { return strings.Contains(strings.Join(r.Cut, "\n"), "scrolling through") }}, // on a busy machine, other waits may end, too
		{name: "a box scrolls", page: `<style>html,body{height:100%;margin:0;overflow:hidden}main{height:100%;overflow:auto;background:#0a0}div{height:2000px}</style><main id="m"><div>text</div></main>`,
			ok: func(r Record) bool { return r.Scroller == "main#m" && r.Height == 300 }},
		{name: "wide", page: green + `<div style="width:700px;height:10px"></div>`, ok: func(r Record) bool { return r.Wide == 300 }},
		{name: "service worker", page: green + `<script>navigator.serviceWorker?.register("/sw.js").catch(()=>{})</script>`},
		{name: "built-ins replaced", page: `<script>document.getAnimations=()=>{throw 1};window.setTimeout=()=>{};window.requestAnimationFrame=()=>{};Array.prototype.map=null</script>` + green},
		{name: "policy", page: `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">` + green},
		{name: "broken image", page: green + `<img src="/broken.png">`, waits: patient, ok: func(r Record) bool { return r.BadImages == 1 && len(r.Missing) == 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			handlers := map[string]http.HandlerFunc{"/sw.js": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/javascript")
				_, _ = w.Write([]byte("onfetch=e=>e.respondWith(new Response('x'))"))
			}, "/w.js": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/javascript")
			}, "/stream": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte("data: x\n\n"))
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}}
			if c.handler != nil {
				handlers["/page"] = c.handler
			}
			s := site(t, map[string]string{"/page": "<!DOCTYPE html>" + c.page, "/green": "<!DOCTYPE html>" + green}, handlers)
			w := short()
			if c.name == "grows while scrolled" {
				w.Sweep = nodes.Duration(time.Second)
			}
			if c.waits != nil {
				c.waits(&w)
			}
			rec, img, err := view(t, s.URL+"/page", w, nil)
			if got := nodetest.Category(err); got != c.category {
				t.Fatalf("category %q, want %q: %v", got, c.category, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.message) || strings.Contains(err.Error(), "context deadline exceeded") {
					t.Errorf("message %q; want one with %q that names the cause", err, c.message)
				}
				return
			}
			if got := at(img, 399, 299); got != "00aa00" {
				t.Errorf("the picture's corner is %s, want 00aa00", got)
			}
			if c.ok != nil && !c.ok(rec) {
				t.Errorf("record is not as it should be: %+v", rec)
			}
		})
	}
}

// What requests and scripts do in any order, or as often as they like, is told in one way.
func TestOrder(t *testing.T) {
	l := newTracker("http://127.0.0.1:1", 0)
	for n := mostNoted + 9; n > 0; n-- {
		l.got(fmt.Sprintf("http://127.0.0.1:1/%02d", n), 404)
		l.update(func() { l.refused(fmt.Sprintf("http://h%02d/", n)) })
	}
	for range mostMessages + 9 {
		l.said(true, "blob:http://127.0.0.1:1/3ce74fb8-9c95-4b76-b5dd-daccd694c5b8 broke")
	}
	r := l.record()
	if len(r.Missing) != mostNoted || r.Missing[0] != "/01: status 404" || !slices.IsSorted(r.Missing) || r.Refused[0] != "http://h01" || !slices.IsSorted(r.Refused) {
		t.Errorf("missing %q, refused %q; want the first %d in order", r.Missing, r.Refused, mostNoted)
	}
	if r.ErrorCount != mostMessages || !slices.Equal(r.Errors, []string{"blob: broke"}) {
		t.Errorf("%d errors %q", r.ErrorCount, r.Errors)
	}
}

// A page reaches its own server and nothing else on this machine, whatever it uses for it.
func TestOutside(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var reached []string
	reach := func(how string) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, how)
	}
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reach(r.URL.Path) }))
	other.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			reach("connection")
		}
	}
	other.Start()
	defer other.Close()
	there := other.Listener.Addr().String()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for b := make([]byte, 100); ; {
			if _, _, err := udp.ReadFrom(b); err != nil {
				return
			}
			reach("datagram")
		}
	}()
	defer udp.Close()
	use := `fetch("http://` + there + `/fetch",{mode:"no-cors"}).catch(()=>{});try{new WebSocket("ws://` + there + `/socket")}catch{};try{new EventSource("http://` + there + `/events")}catch{};`
	script := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(text))
		}
	}
	s := site(t, map[string]string{"/page": `<!DOCTYPE html><link rel="preconnect" href="http://` + there + `"><link rel="prefetch" href="http://` + there + `/prefetch">
		<script type="speculationrules">{"prefetch":[{"urls":["http://` + there + `/ahead"],"eagerness":"immediate"}],"prerender":[{"urls":["/ahead"],"eagerness":"immediate"}]}</script>` + green + `
		<img src="/away"><iframe src="/away"></iframe><iframe sandbox="allow-scripts" srcdoc="<script>new Worker(URL.createObjectURL(new Blob(['fetch(\'http://` + there + `/sandbox\')'])))</script>"></iframe>
		<script>` + use + `navigator.sendBeacon("http://` + there + `/beacon");open("http://` + there + `/window");
		new Worker("/use.js");new Worker("/import.js",{type:"module"});new SharedWorker("/use.js");navigator.serviceWorker.register("/use.js").catch(()=>{});
		for(const urls of ["stun:` + udp.LocalAddr().String() + `","turn:` + there + `?transport=tcp"]){const p=new RTCPeerConnection({iceServers:[{urls,username:"a",credential:"b"}]});p.createDataChannel("x");p.createOffer().then(o=>p.setLocalDescription(o))}</script>`,
		"/ahead": `<script>` + use + `</script>`,
	}, map[string]http.HandlerFunc{
		"/use.js": script(use + `try{importScripts("http://` + there + `/import")}catch{};try{new Worker("/nested.js")}catch{}`), "/nested.js": script(use), "/import.js": script(`import "http://` + there + `/module"`),
		"/away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+there+"/redirected", http.StatusFound)
		},
	})
	if _, img, err := view(t, s.URL+"/page", short(), nil); err != nil || at(img, 399, 299) != "00aa00" {
		t.Errorf("error %v, corner %s", err, at(img, 399, 299))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(reached) > 0 {
		t.Errorf("the page has reached %q of another server", reached)
	}
}

// Addresses of this machine, however they are written, are the page's own origin as the browser writes it.
func TestAddresses(t *testing.T) {
	for _, c := range []struct{ address, want, reach string }{
		{"http://127.0.0.1:80/a?b#c", "http://127.0.0.1/a?b#c", "127.0.0.1:80"},
		{"HTTPS://127.0.0.2/", "https://127.0.0.2/", "127.0.0.2:443"},
		{"http://[0:0:0::1]:8080/", "http://[::1]:8080/", "[::1]:8080"},
		{"http://[::1]", "http://[::1]", "[::1]:80"},
		{"http://[::ffff:127.0.0.1]:81/", "http://127.0.0.1:81/", "127.0.0.1:81"},
		{"http://localhost/", "", ""},
		{"http://127.1/", "", ""},
		{"http://10.0.0.1/", "", ""},
		{"ftp://127.0.0.1/", "", ""},
	} {
		u, err := loopback(c.address)
		if err != nil {
			if c.want != "" {
				t.Errorf("%s: %v", c.address, err)
			}
			continue
		}
		rules := (&Settings{}).flags("", u.Scheme+"://"+u.Host)["host-resolver-rules"]
		if u.String() != c.want || rules != "MAP "+c.reach+" "+c.reach+" , MAP * ~NOTFOUND" {
			t.Errorf("%s: %s, %s; want %s, %s", c.address, u, rules, c.want, c.reach)
		}
	}
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here")
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!DOCTYPE html>" + green + "<script src='/x.js'></script>"))
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	defer s.Close()
	if rec, img, err := view(t, s.URL+"/page", short(), nil); err != nil || at(img, 399, 299) != "00aa00" || len(rec.Refused) > 0 || rec.URL != "/page" {
		t.Errorf("error %v, corner %s, record %+v", err, at(img, 399, 299), rec)
	}
}

// What only some browsers ask for makes no difference between them.
func TestIcon(t *testing.T) {
	l := newTracker("http://127.0.0.1:1", 0)
	for i, address := range []string{"http://127.0.0.1:1/favicon.ico", "http://127.0.0.1:1/x.png"} {
		id := network.RequestID(fmt.Sprint(i))
		l.asked(&network.EventRequestWillBeSent{RequestID: id, Request: &network.Request{URL: address}})
		l.got(address, 404)
		l.failed(string(id), "net::ERR_ABORTED", false)
	}
	if want := []string{"/x.png: net::ERR_ABORTED", "/x.png: status 404"}; !slices.Equal(l.rec.Missing, want) {
		t.Errorf("missing %q, want %q", l.rec.Missing, want)
	}
}

// P-4: a crashed page is looked at once more in a new tab, an ended browser is started once more.
func TestTwice(t *testing.T) {
	s := site(t, map[string]string{"/page": green}, nil)
	for _, c := range []struct {
		name   string
		break_ func(p *Page) error
		always bool
		want   string
		visits int
	}{
		{"tab crashes once", crash, false, "", 2},
		{"tab crashes always", crash, true, "screenshot_failed", 2},
		{"browser is killed once", kill, false, "", 2},
		{"browser is killed always", kill, true, "screenshot_failed", 2},
		{"browser is killed while nothing is asked", killInPause, false, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			visits := 0
			_, _, err := view(t, s.URL+"/page", short(), func(p *Page) error {
				visits++
				if visits > 1 && !c.always {
					return nil
				}
				return c.break_(p)
			})
			if got := nodetest.Category(err); got != c.want || visits != c.visits {
				t.Errorf("category %q after %d visits, want %q after %d: %v", got, visits, c.want, c.visits, err)
			}
		})
	}
}

func crash(p *Page) error {
	_, err := call(p, page.Crash, cdp.Empty{})
	if err == nil {
		err = errors.New("the page did not crash")
	}
	return err
}

func kill(p *Page) error {
	if err := chromedp.FromContext(p.ctx).Browser.Process().Kill(); err != nil {
		return err
	}
	_, err := p.Picture(nil)
	return err
}

func killInPause(p *Page) error {
	if err := chromedp.FromContext(p.ctx).Browser.Process().Kill(); err != nil {
		return err
	}
	return p.Pause(nodes.Duration(time.Minute))
}

// A person who stops the task is not taken for a fault of the page, and is not kept waiting.
func TestCancel(t *testing.T) {
	t.Parallel()
	task, _ := nodetest.New(t, "screenshot", nil)
	s := site(t, map[string]string{"/page": green}, nil)
	set, waits := defaultSettings(), short()
	stopped := errors.New("stopped by a person")
	ctx, cancel := context.WithCancelCause(context.Background())
	group := 0
	_, _, err := Look(ctx, task, &Job{
		Source: &Source{Page: &PageSource{URL: s.URL + "/page"}}, Settings: &set, Waits: &waits, Scale: 1, Viewports: []Viewport{{400, 300}},
		Visit: func(_ int, p *Page) error {
			group = pid(p)
			if len(working(task.Scratch, group)) < 4 {
				t.Error("a running browser has too few processes: the test looks for the wrong ones")
			}
			cancel(stopped)
			<-p.ctx.Done()
			_, err := p.Picture(nil)
			return err
		},
	})
	if !errors.Is(err, stopped) {
		t.Errorf("error %v, want %v", err, stopped)
	}
	nothingLeft(t, task.Scratch, group)
}

// Tabs stand side by side in one browser, know nothing of each other, and a hanging one holds up nobody.
func TestTabsSideBySide(t *testing.T) {
	t.Parallel()
	task, _ := nodetest.New(t, "screenshot", nil)
	s := site(t, map[string]string{"/page": green + `<script>
		localStorage.n = Number(localStorage.n || 0) + 1; document.title = localStorage.n;
		if (innerWidth == 500) onload = () => setTimeout(() => { const x = new XMLHttpRequest(); x.open("GET", "/never", false); x.send() }, 50)</script>`}, nil)
	set, waits := defaultSettings(), short()
	waits.Command = nodes.Duration(10 * time.Second) // the other tabs need less on a slow machine as well
	views := []Viewport{{400, 300}, {500, 300}, {600, 300}, {700, 300}, {800, 300}}
	var mu sync.Mutex
	titles := map[int]string{}
	_, _, err := Look(context.Background(), task, &Job{
		Source: &Source{Page: &PageSource{URL: s.URL + "/page"}}, Settings: &set, Waits: &waits, Scale: 1, Viewports: views,
		Visit: func(i int, p *Page) error {
			mu.Lock()
			defer mu.Unlock()
			titles[views[i].Width] = p.Record().Title
			return nil
		},
	})
	if nodetest.Category(err) != "page_hang" || !strings.Contains(err.Error(), "500x300") {
		t.Errorf("error %v, want page_hang of 500x300", err)
	}
	for _, w := range []int{400, 600, 700, 800} {
		if titles[w] != "1" {
			t.Errorf("the tab of width %d counts %q visits of its own storage, want 1", w, titles[w])
		}
	}
	nothingLeft(t, task.Scratch)
}

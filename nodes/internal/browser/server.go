package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"dagrun.dev/nodes"
)

// A server gives a page and its assets, and nothing else, to the browser.
type server struct {
	URL    string // of the page
	origin string // scheme://host:port

	http  *http.Server
	files map[string][]byte
}

// serve starts a server on a free port of 127.0.0.1, or looks at the one that the source names.
func serve(t *nodes.Task, src *Source) (*server, error) {
	if src.own != nil {
		return listen(t, "own.html", map[string][]byte{"/own.html": src.own})
	}
	if src.Page == nil {
		return nil, nodes.Permanent(nodes.Fail("config", "page: missing"))
	}
	if src.Page.URL != "" {
		u, err := loopback(src.Page.URL)
		if err != nil {
			return nil, nodes.Permanent(&nodes.Error{Category: "config", Message: "page.url", Err: err})
		}
		return &server{URL: u.String(), origin: u.Scheme + "://" + u.Host}, nil
	}
	files := map[string][]byte{}
	page := src.Page.asset()
	for _, a := range append([]Asset{page}, src.Assets...) {
		content, err := a.read(t)
		if err != nil {
			return nil, &nodes.Error{Category: "config", Message: "the file " + a.name() + " to be served", Err: err}
		}
		files[path.Clean("/"+a.name())] = content
	}
	return listen(t, page.name(), files)
}

func listen(t *nodes.Task, page string, files map[string][]byte) (*server, error) {
	s := &server{files: files}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, &nodes.Error{Category: "screenshot_failed", Message: "no port for the page's server", Err: err}
	}
	s.origin = "http://" + listener.Addr().String()
	s.URL = s.origin + (&url.URL{Path: path.Clean("/" + page)}).EscapedPath()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Warn(fmt.Sprintf("the page's server ended: %v", err))
		}
	}()
	return s, nil
}

func (a Asset) read(t *nodes.Task) ([]byte, error) {
	r, err := t.Open(a.Artifact, a.File)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// Close ends the server and its connections. The server of page.url goes on.
func (s *server) Close() {
	if s.http == nil {
		return
	}
	done, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(done) != nil {
		_ = s.http.Close() // what the browser left open
	}
}

// ServeHTTP answers with one of the files.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	name := path.Clean("/" + r.URL.Path)
	content, ok := s.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentType(name, content))
	w.Header().Set("Cache-Control", "no-store")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
}

// types are those that the browser insists on, whatever the machine's own table says.
var types = map[string]string{
	".html": "text/html", ".htm": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript",
	".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
	".gif": "image/gif", ".webp": "image/webp", ".avif": "image/avif", ".ico": "image/x-icon",
	".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf", ".txt": "text/plain",
	".wasm": "application/wasm",
}

// contentType goes by the name, else by the content. Texts that are valid UTF-8 are declared so:
// without it, a page that forgot to say so would be read as Latin 1.
func contentType(name string, content []byte) string {
	typ := types[strings.ToLower(path.Ext(name))]
	if typ == "" {
		typ = mime.TypeByExtension(path.Ext(name))
	}
	if typ == "" {
		typ = http.DetectContentType(content)
	}
	if strings.HasPrefix(typ, "text/") && !strings.Contains(typ, "charset") && utf8.Valid(content) {
		typ += "; charset=utf-8"
	}
	return typ
}

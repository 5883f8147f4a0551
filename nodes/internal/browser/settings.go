package browser

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"dagrun.dev/nodes"
)

// A Source says where a page comes from: the settings page and assets of kinds that look at one.
type Source struct {
	Page   *PageSource `json:"page"`
	Assets []Asset     `json:"assets"`

	own []byte // a page of this package, instead of all that
}

// PageSource has exactly one field.
type PageSource struct {
	Artifact string `json:"artifact"`
	File     string `json:"file"`
	URL      string `json:"url"`
}

// An Asset is a further file of the page's origin.
type Asset struct {
	Artifact string `json:"artifact"`
	File     string `json:"file"`
	As       string `json:"as"`
}

// View is what all kinds that look at a page have among their settings.
type View struct {
	Source
	Viewports []Viewport `json:"viewports"`
	Waits     Waits      `json:"waits"`
	Browser   Settings   `json:"browser"`
}

// DefaultView holds the schema's defaults.
func DefaultView() View { return View{Waits: defaultWaits(), Browser: defaultSettings()} }

// A Viewport is the size of a view in CSS pixels.
type Viewport struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// String returns "WxH".
func (v Viewport) String() string { return fmt.Sprintf("%dx%d", v.Width, v.Height) }

// Sizes lists viewports for people.
func Sizes(list []Viewport) string {
	sizes := make([]string, len(list))
	for i, v := range list {
		sizes[i] = v.String()
	}
	return strings.Join(sizes, ", ")
}

// Waits bound every wait. The zero value is of no use; see defaultWaits.
type Waits struct {
	Launch      nodes.Duration `json:"launch"`
	Navigate    nodes.Duration `json:"navigate"`
	Idle        nodes.Duration `json:"idle"`
	Fonts       nodes.Duration `json:"fonts"`
	Images      nodes.Duration `json:"images"`
	Sweep       nodes.Duration `json:"sweep"`
	Command     nodes.Duration `json:"command"`
	Viewport    nodes.Duration `json:"viewport"`
	Node        nodes.Duration `json:"node"`
	Settle      nodes.Duration `json:"settle"`
	Pause       nodes.Duration `json:"pause"`
	Dialogs     int            `json:"dialogs"`
	Navigations int            `json:"navigations"`
}

// defaultWaits are those of the schema. They were measured with chromium 156 on two busy cores: a start takes 0.3 to 1
// s and was seen to take 10; the network of a page that loads nothing more is called idle after 0.5 to 1 s.
func defaultWaits() Waits {
	const s, ms = nodes.Duration(time.Second), nodes.Duration(time.Millisecond)
	return Waits{
		Launch: 40 * s, Navigate: 10 * s, Idle: 5 * s, Fonts: 3 * s, Images: 3 * s, Sweep: 15 * s,
		Command: 10 * s, Viewport: 60 * s, Node: 180 * s, Settle: 200 * ms, Pause: 100 * ms,
		Dialogs: 20, Navigations: 3,
	}
}

// Settings say which browser.
type Settings struct {
	Path           string         `json:"path"`
	Flags          []string       `json:"flags"`
	Install        []string       `json:"install"`
	InstallTimeout nodes.Duration `json:"installTimeout"`
	Missing        string         `json:"missing"` // stop | degrade
	MemoryMB       uint64         `json:"memoryMB"`
}

// defaultSettings are those of the schema. Without the bound for memory a page that allocates one buffer after the
// other took 15 GB; within it that is an error of the page's script, and ordinary pages do not notice.
func defaultSettings() Settings {
	return Settings{InstallTimeout: nodes.Duration(5 * time.Minute), Missing: "stop", MemoryMB: 1024}
}

// Describe adds what the page and its assets read, and mistakes, to tr.
func (s *Source) Describe(tr *nodes.Traits) {
	names := map[string]bool{}
	if p := s.Page; p == nil {
		tr.Problemf("page", "missing: what to look at, as page: {artifact: NAME}")
	} else {
		tr.OneOf("page", "artifact, file, url", p.Artifact != "", p.File != "", p.URL != "")
		tr.Read(p.Artifact)
		tr.File(p.File)
		if p.URL != "" && !strings.Contains(p.URL, "${") {
			if _, err := loopback(p.URL); err != nil {
				tr.Problemf("page.url", "%v", err)
			}
		}
		if p.URL != "" && len(s.Assets) > 0 {
			tr.Problemf("assets", "a page of another server has its assets there")
		}
		names[p.asset().name()] = true
	}
	for i, a := range s.Assets {
		at := fmt.Sprintf("assets.%d", i)
		tr.OneOf(at, "artifact, file", a.Artifact != "", a.File != "")
		tr.Read(a.Artifact)
		tr.File(a.File)
		if names[a.name()] {
			tr.Problemf(at, "two files are served as %s", a.name())
		}
		names[a.name()] = true
	}
}

// asset is the page as a file that is served.
func (p *PageSource) asset() Asset { return Asset{Artifact: p.Artifact, File: p.File} }

func (a Asset) name() string {
	switch {
	case a.As != "":
		return path.Clean(a.As)
	case a.Artifact != "":
		return path.Clean(a.Artifact)
	}
	return path.Base(a.File)
}

// loopback parses the address of a server on this machine and writes it as browsers do.
func loopback(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	usual := map[string]string{"http": "80", "https": "443"}
	if usual[u.Scheme] == "" {
		return nil, fmt.Errorf("want http://127.0.0.1:PORT/..., not the scheme %q", u.Scheme)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	ip = ip.Unmap()
	if err != nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("want an address of this machine such as http://127.0.0.1:8080/, not %q", u.Host)
	}
	port := u.Port()
	if port == "" {
		port = usual[u.Scheme]
	}
	u.Host = net.JoinHostPort(ip.String(), port)
	if port == usual[u.Scheme] {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	return u, nil
}

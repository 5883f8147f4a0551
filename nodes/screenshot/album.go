package screenshot

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/browser"
)

// An album is what was seen at one viewport.
type album struct {
	View browser.Viewport `json:"viewport"`
	browser.Record
	Shots        []shot  `json:"shots"`
	Blanks       int     `json:"blanks"`
	LongestBlank int     `json:"max_consecutive_blanks"`
	BlankShare   float64 `json:"blank_share"`
}

// A shot is one picture.
type shot struct {
	Name    string `json:"file"`
	Type    string `json:"type"` // viewport | full | scroll
	Y       int    `json:"y"`    // where it begins on the page, in CSS pixels
	Width   int    `json:"width"`
	Height  int    `json:"height"` // of the picture, in its own pixels
	Bytes   int    `json:"bytes"`
	SHA256  string `json:"sha256"`
	Colours int    `json:"colours"` // distinct ones, counted up to a limit
	Text    int    `json:"text"`    // visible characters, counted up to a limit
	Blank   bool   `json:"blank,omitempty"`

	path string // under Task.Scratch
}

// photograph takes the pictures of one viewport: first the view as a reader meets it, then the whole
// page, then what one sees on the way down.
func (s *settings) photograph(p *browser.Page, scratch string) (*album, error) {
	a := &album{View: p.Viewport, Record: p.Record()}
	dir, err := os.MkdirTemp(scratch, "pictures-*")
	if err != nil {
		return nil, err
	}
	c := &camera{set: s, page: p, album: a, dir: dir}
	for _, take := range []struct {
		kind string
		shot func() error
	}{{"viewport", c.view}, {"full", c.whole}, {"scroll", c.scroll}} {
		if !slices.Contains(s.Shots, take.kind) {
			continue
		}
		if err := take.shot(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

type camera struct {
	set   *settings
	page  *browser.Page
	album *album
	dir   string
}

func (c *camera) view() error {
	y, err := c.page.ScrollTo(0)
	if err != nil {
		return err
	}
	return c.take("viewport", fmt.Sprintf("viewport-%v.png", c.page.Viewport), y, nil)
}

// whole takes the whole page. Where a box scrolls instead of the page, the box is laid out at its full height for it.
func (c *camera) whole() error {
	if c.album.Scroller == "" {
		return c.laidOut()
	}
	unrolled, err := c.page.Unroll()
	if err != nil {
		return err
	}
	if unrolled {
		return cmp.Or(c.laidOut(), c.page.RollUp())
	}
	c.cut("the whole-page picture shows the first view of <%s> only", c.album.Scroller)
	if err := c.page.RollUp(); err != nil {
		return err
	}
	return c.tiles()
}

// laidOut takes the page as it is laid out, and says what boxes of the page cut off all the same.
func (c *camera) laidOut() error {
	boxes, err := c.page.Hidden()
	if err != nil {
		return err
	}
	for _, b := range boxes {
		c.cut("<%s> cuts off %d of its %d px; they are on no picture", b.Name, b.Whole-b.Seen, b.Whole)
	}
	return c.tiles()
}

// tiles takes the page in one picture; browsers and models do not bear very tall ones, so a tall page becomes
// numbered tiles. One picture of 17,000 px took 14 s, one of 50,000 px 42 s and 4.1 GB.
func (c *camera) tiles() error {
	m, err := c.page.Measure()
	if err != nil {
		return err
	}
	height := m.Height
	if most := c.set.Tile * c.set.MaxTiles; height > most {
		c.cut("the page is %d px tall; what lies below %d px is on no whole-page picture (tile, maxTiles)", height, most)
		height = most
	}
	if height <= c.set.Tile {
		return c.take("full", fmt.Sprintf("full-%v.png", c.page.Viewport), 0, &browser.Strip{Height: height})
	}
	for y, n := 0, 1; y < height; y, n = y+c.set.Tile, n+1 {
		strip := &browser.Strip{Y: y, Height: min(c.set.Tile, height-y)}
		if err := c.take("full", fmt.Sprintf("full-%v-tile%d.png", c.page.Viewport, n), y, strip); err != nil {
			return err
		}
	}
	return nil
}

// scroll takes a picture after each scroll by a share of the view, down to the bottom.
func (c *camera) scroll() error {
	m, err := c.page.Measure()
	if err != nil {
		return err
	}
	step := max(1, int(math.Floor(float64(m.View)*c.set.Step)))
	steps := (m.Scroll + step - 1) / step
	if steps > c.set.MaxSteps {
		c.cut("scroll pictures end after %d of %d steps (maxSteps)", c.set.MaxSteps, steps)
		steps = c.set.MaxSteps
	}
	for n := range steps {
		y, err := c.page.ScrollTo(n * step)
		if err != nil {
			return err
		}
		if err := c.page.Pause(c.set.Waits.Pause); err != nil {
			return err
		}
		if err := c.take("scroll", fmt.Sprintf("scroll-%v-step%d.png", c.page.Viewport, n+1), y, nil); err != nil {
			return err
		}
	}
	return nil
}

func (c *camera) cut(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.album.Cut = append(c.album.Cut, text)
	c.album.Warnings = append(c.album.Warnings, text)
}

// take takes one picture, of the view or of a strip of the page, and puts it down as it is.
func (c *camera) take(kind, name string, y int, strip *browser.Strip) error {
	png, err := c.page.Picture(strip)
	if err != nil {
		return err
	}
	text, err := c.page.Text(strip)
	if err != nil {
		return err
	}
	height := c.page.Viewport.Height
	if strip != nil {
		height = strip.Height
	}
	sum := sha256.Sum256(png)
	s := shot{
		Name: name, Type: kind, Y: y, Width: c.pixels(c.page.Viewport.Width), Height: c.pixels(height), Bytes: len(png),
		SHA256: hex.EncodeToString(sum[:]), Text: text, path: filepath.Join(c.dir, name),
	}
	c.album.Shots = append(c.album.Shots, s)
	return os.WriteFile(s.path, png, 0o600)
}

// pixels turns CSS pixels into those of a picture.
func (c *camera) pixels(css int) int { return int(math.Round(float64(css) * c.set.Scale)) }

// develop looks at the pictures, after the browser is gone: whether each has the size that it should
// have, and whether it is blank.
func (a *album) develop(blank float64) error {
	for i := range a.Shots {
		s := &a.Shots[i]
		b, err := os.ReadFile(s.path)
		if err != nil {
			return err
		}
		seen, err := look(b)
		if err != nil {
			return &nodes.Error{Category: "screenshot_failed", Message: s.Name, Err: err}
		}
		if max(seen.width-s.Width, s.Width-seen.width, seen.height-s.Height, s.Height-seen.height) > 1 {
			return nodes.Failf("screenshot_failed", "%s is %d x %d pixels, not %d x %d",
				s.Name, seen.width, seen.height, s.Width, s.Height)
		}
		s.Width, s.Height, s.Colours, s.Blank = seen.width, seen.height, seen.colours, seen.blank(s.Text, blank)
	}
	a.count()
	return nil
}

// count sums up what is blank.
func (a *album) count() {
	run := 0
	for _, s := range a.Shots {
		if !s.Blank {
			run = 0
			continue
		}
		run++
		a.Blanks++
		a.LongestBlank = max(a.LongestBlank, run)
	}
	if n := len(a.Shots); n > 0 {
		a.BlankShare = float64(a.Blanks) / float64(n)
	}
	if a.Blanks > 0 {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%d of %d pictures are blank", a.Blanks, len(a.Shots)))
	}
}

package agent

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"image"
	_ "image/gif" // for the size of a picture
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
)

// A contentPart is one part of what an HTTP provider is sent: a text, or a picture.
type contentPart struct {
	text  string
	media string // of a picture, "image/png"; "" = text
	data  string // in base64
	mark  bool   // what stands up to here may be kept
}

func (p *contentPart) size() int { return len(p.text) + len(p.data) }

// A content is what an HTTP provider is sent.
type content struct {
	system contentPart
	parts  []contentPart
}

// plain reports whether there are texts and nothing more.
func (c *content) plain() bool { return len(c.parts) == 1 && !c.system.mark }

// mostMarks is how many marks one request may hold; Anthropic refuses more, OpenAI writes no more.
const mostMarks = 4

// content returns the system text and the message in parts, cut at the template's borders. Given files stand before
// the last block, which is this question's own. Marks are set at the borders; where there are more than a
// request may hold, at those behind the longest blocks, because there a mark saves most.
func (q *question) content() (*content, error) {
	type end struct {
		of   *contentPart
		size int // of what it ends
	}
	var ends []end
	c := &content{system: contentPart{text: q.system}}
	for _, text := range q.blocks {
		c.parts = append(c.parts, contentPart{text: text})
	}
	given, err := q.givenParts()
	if err != nil {
		return nil, err
	}
	if !q.marked() && len(given) == 0 {
		c.parts = []contentPart{{text: q.prompt()}}
		return c, nil
	}
	last := len(c.parts) - 1
	c.parts = slices.Insert(c.parts, last, given...)
	if q.system != "" {
		ends = append(ends, end{&c.system, c.system.size()})
	}
	for i := range c.parts[:last] {
		ends = append(ends, end{&c.parts[i], c.parts[i].size()})
	}
	if n := len(given); n > 0 {
		ends = append(ends, end{&c.parts[last+n-1], total(given)})
	}
	if q.marked() {
		slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(b.size, a.size) })
		for _, e := range ends[:min(len(ends), mostMarks)] {
			e.of.mark = true
		}
	}
	return c, nil
}

func total(parts []contentPart) (n int) {
	for i := range parts {
		n += parts[i].size()
	}
	return n
}

// marked reports whether the request holds marks: where the spec names a time, or the template borders and the provider
// takes marks with every model.
func (q *question) marked() bool {
	switch q.set.Cache {
	case "":
		return q.set.Provider == "anthropic" && len(q.blocks) > 1
	case "off":
		return false
	}
	return true
}

// pictureTypes are what the providers read.
var pictureTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// givenParts returns the given files as they stand in the working folder: pictures, and texts. Each stands behind its
// name, by which the prompt may speak of it.
func (q *question) givenParts() ([]contentPart, error) {
	if len(q.set.Give) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(q.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	may := capability.Of(q.set.Provider).Most
	pictures, longest, whose := 0, 0, "" // the longest side of a picture
	var parts []contentPart
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		raw, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		media := http.DetectContentType(raw)
		switch {
		case slices.Contains(pictureTypes, media):
			p := contentPart{media: media, data: base64.StdEncoding.EncodeToString(raw)}
			if p.size() > may.Picture {
				return tooBig("give: the picture %s is %.1f MB in base64; provider %s takes at most %d MB a picture",
					name, megabytes(p.size()), q.set.Provider, may.Picture>>20)
			}
			pictures++
			// The size of a type that the standard library does not read stays unknown.
			c, _, err := image.DecodeConfig(bytes.NewReader(raw))
			if side := max(c.Width, c.Height); err == nil && side > longest {
				longest, whose = side, name
			}
			parts = append(parts, contentPart{text: name + ":"}, p)
		case utf8.Valid(raw):
			text := strings.TrimSuffix(string(raw), "\n")
			parts = append(parts, contentPart{text: "<file name=\"" + name + "\">\n" + text + "\n</file>\n"})
		default:
			return nodes.Permanent(nodes.Failf("config",
				"give: %s is neither text nor a PNG, JPEG, GIF or WebP picture; provider %s takes nothing else",
				name, q.set.Provider))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	side := may.Side
	if pictures > may.Many && may.ManySide > 0 {
		side = may.ManySide
	}
	switch n := total(parts); {
	case n > may.Bytes:
		return nil, tooBig("give: the files are %.1f MB; a request to provider %s holds at most %d MB",
			megabytes(n), q.set.Provider, may.Bytes>>20)
	case pictures > may.Pictures:
		return nil, tooBig("give: %d pictures; a request to provider %s holds at most %d",
			pictures, q.set.Provider, may.Pictures)
	case side > 0 && longest > side:
		return nil, tooBig("give: the picture %s has a side of %d pixels; "+
			"provider %s takes at most %d where there are %d pictures",
			whose, longest, q.set.Provider, side, pictures)
	}
	return parts, nil
}

func tooBig(format string, args ...any) error {
	return nodes.Permanent(nodes.Failf("input_too_big", format, args...))
}

func megabytes(n int) float64 { return float64(n) / (1 << 20) }

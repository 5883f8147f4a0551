package screenshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/draw"
	"image/png"
)

// A sight is what the pixels of a picture say.
type sight struct {
	width, height int
	colours       int     // distinct ones, up to mostColours
	most          float64 // share of the most frequent one among those counted
}

const mostColours = 1000

// look counts the colours of a PNG picture.
func look(b []byte) (sight, error) {
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return sight{}, fmt.Errorf("no PNG picture: %w", err)
	}
	pix, stride := pixels(img)
	size := img.Bounds().Size()
	c := counter{counts: map[uint32]int{}}
	for y := 0; y < size.Y; {
		row := pix[y*stride : y*stride+4*size.X]
		same := 1 // rows that look like this one
		for y+same < size.Y && bytes.Equal(row, pix[(y+same)*stride:(y+same)*stride+4*size.X]) {
			same++
		}
		c.row(row, same)
		y += same
	}
	s := sight{width: size.X, height: size.Y, colours: len(c.counts)}
	for _, n := range c.counts {
		s.most = max(s.most, float64(n)/float64(size.X*size.Y))
	}
	return s, nil
}

// A counter counts pixels by colour.
type counter struct{ counts map[uint32]int }

// row counts the pixels of a row that is there so many times. Neighbours are mostly equal: the
// table is asked once per run of them, and blocks of one colour are not looked into.
func (c counter) row(row []byte, times int) {
	const block = 4 * 32
	for len(row) > 0 {
		colour, n := binary.LittleEndian.Uint32(row), 4
		for n+block <= len(row) && bytes.Equal(row[n:n+block], row[n-4:n-4+block]) {
			n += block
		}
		for n < len(row) && binary.LittleEndian.Uint32(row[n:]) == colour {
			n += 4
		}
		if _, known := c.counts[colour]; known || len(c.counts) < mostColours {
			c.counts[colour] += n / 4 * times
		}
		row = row[n:]
	}
}

// pixels returns four bytes per pixel.
func pixels(img image.Image) (pix []byte, stride int) {
	switch i := img.(type) {
	case *image.RGBA:
		return i.Pix, i.Stride
	case *image.NRGBA:
		return i.Pix, i.Stride
	}
	copied := image.NewRGBA(img.Bounds())
	draw.Draw(copied, copied.Rect, img, img.Bounds().Min, draw.Src)
	return copied.Pix, copied.Stride
}

// blank says whether nothing is to be seen. One colour is nothing, whatever text the page claims to
// show. Nearly one is nothing when there is no text: the share of one colour alone cannot tell an empty
// page from one with a single line.
func (s sight) blank(text int, share float64) bool {
	return s.colours == 1 || text == 0 && s.most >= share
}

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
	pale          bool    // no pixel differs visibly from the most frequent colour
}

const (
	mostColours = 1000
	visible     = 8  // least difference in one channel, of 255, that an eye may notice
	fewest      = 4  // colours in a picture with text: its edges are smoothed
	drawn       = 64 // colours in a picture with something that is drawn, such as text within a canvas
)

// look counts the colours of a PNG picture.
func look(b []byte) (sight, error) {
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return sight{}, fmt.Errorf("no PNG picture: %w", err)
	}
	pix, stride := pixels(img)
	size := img.Bounds().Size()
	counts := map[uint32]int{} // pixels, by colour
	for y := 0; y < size.Y; {
		row := pix[y*stride : y*stride+4*size.X]
		same := 1 // rows that look like this one
		for y+same < size.Y && bytes.Equal(row, pix[(y+same)*stride:(y+same)*stride+4*size.X]) {
			same++
		}
		countRow(counts, row, same)
		y += same
	}
	s := sight{width: size.X, height: size.Y, colours: len(counts)}
	ground, count := uint32(0), 0
	for colour, n := range counts {
		if n > count || n == count && colour < ground {
			ground, count = colour, n
		}
	}
	s.most, s.pale = float64(count)/float64(size.X*size.Y), len(counts) < mostColours
	for colour := range counts {
		s.pale = s.pale && near(colour, ground)
	}
	return s, nil
}

// near says whether two colours look the same.
func near(a, b uint32) bool {
	for shift := 0; shift < 32; shift += 8 {
		x, y := int(a>>shift&0xff), int(b>>shift&0xff)
		if x-y >= visible || y-x >= visible {
			return false
		}
	}
	return true
}

// countRow counts the pixels of a row that is there so many times. Neighbours are mostly equal: the
// table is asked once per run of them, and blocks of one colour are not looked into.
func countRow(counts map[uint32]int, row []byte, times int) {
	const block = 4 * 32
	for len(row) > 0 {
		colour, n := binary.LittleEndian.Uint32(row), 4
		for n+block <= len(row) && bytes.Equal(row[n:n+block], row[n-4:n-4+block]) {
			n += block
		}
		for n < len(row) && binary.LittleEndian.Uint32(row[n:]) == colour {
			n += 4
		}
		if _, known := counts[colour]; known || len(counts) < mostColours {
			counts[colour] += n / 4 * times
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

// blank reports whether nothing is to be seen. One colour, or shades of it that no eye tells apart, is nothing,
// whatever text the page claims to show. Nearly one is nothing when there is no text, or none that left its mark: the
// share of one colour alone cannot tell an empty page from one with a single line.
func (s sight) blank(text int, share float64) bool {
	if s.colours == 1 || s.pale {
		return true
	}
	return s.most >= share && (s.colours < fewest || text == 0 && s.colours < drawn)
}

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
	counts := map[uint32]int{}
	last, run := uint32(0), 0
	for y := range size.Y {
		row := pix[y*stride : y*stride+4*size.X]
		for x := 0; x < len(row); x += 4 {
			// Neighbours are mostly equal: the table is asked once per run of them.
			if c := binary.LittleEndian.Uint32(row[x:]); c == last {
				run++
			} else {
				count(counts, last, run)
				last, run = c, 1
			}
		}
	}
	count(counts, last, run)
	s := sight{width: size.X, height: size.Y, colours: len(counts)}
	for _, n := range counts {
		s.most = max(s.most, float64(n)/float64(size.X*size.Y))
	}
	return s, nil
}

func count(counts map[uint32]int, colour uint32, run int) {
	if run == 0 {
		return
	}
	if _, known := counts[colour]; known || len(counts) < mostColours {
		counts[colour] += run
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

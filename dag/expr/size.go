package expr

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// MaxSize bounds a value that other expressions build on: bytes of text, plus one for every other value in it.
// The steps of one expression are bounded, but a row of them could double a value each.
const MaxSize = 1 << 20

// Bounded returns an error for a value of Program.Val that is larger than MaxSize.
func Bounded(v any) error {
	left := MaxSize
	if val, ok := v.(ref.Val); ok {
		weigh(val, &left, 1)
	}
	if left < 0 {
		return fmt.Errorf("holds more than %d bytes", MaxSize)
	}
	return nil
}

// weigh takes a value's size off what is left, and stops where nothing is. A value weighs as much as some
// bytes of text do.
func weigh(v ref.Val, left *int, bytes int) {
	if *left -= bytes; *left < 0 {
		return
	}
	switch x := v.(type) {
	case types.String:
		*left -= len(x)
	case types.Bytes:
		*left -= len(x)
	case traits.Mapper:
		for it := x.Iterator(); *left >= 0 && it.HasNext() == types.True; {
			key := it.Next()
			weigh(key, left, bytes)
			weigh(x.Get(key), left, bytes)
		}
	case traits.Lister:
		if n, _ := x.Size().(types.Int); int(n) > *left/bytes { // a list that was doubled over and over
			*left = -1
			return
		}
		for it := x.Iterator(); *left >= 0 && it.HasNext() == types.True; {
			weigh(it.Next(), left, bytes)
		}
	}
}

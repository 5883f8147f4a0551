package expr

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// prices say what a call costs beside one unit, by its function and from its arguments; nothing is
// looked at for longer than left allows. What is not named here costs what looking at all its
// arguments does.
var prices = map[string]func(args []ref.Val, left int) int{
	operators.Equals:    toTheShorterEnd,
	operators.NotEquals: toTheShorterEnd,
	operators.In:        search,

	"distinct": eachWithEach, "sets.contains": eachWithEach,
	"sets.equivalent": eachWithEach, "sets.intersects": eachWithEach,
	"sort": sorting, "@sortByAssociatedKeys": sorting,
	"rotate": copying, "slice": copying, "reverse": copying,
	// These take the text apart into characters first.
	"indexOf": reading, "lastIndexOf": reading, "substring": reading, "charAt": reading,

	"lists.range": func(args []ref.Val, _ int) int {
		n, _ := args[0].(types.Int)
		return 8 * int(min(max(n, 0), maxList+1))
	},
	"split": func(args []ref.Val, _ int) int {
		text, _ := args[0].(types.String)
		by, _ := args[1].(types.String)
		return len(text)/4 + 8*(strings.Count(string(text), string(by))+1)
	},
	"join": func(args []ref.Val, _ int) int { return perValue * items(args[0]) },
	"flatten": func(args []ref.Val, left int) int {
		if len(args) > 1 { // of many levels
			return perArgument(args, left)
		}
		return 8 * items(args[0])
	},

	operators.Add: constant, // two lists are joined without being copied; of texts, see lengths
	"size":        constant, "first": constant, "last": constant,
	"or": constant, "orValue": constant, "hasValue": constant, "value": constant,
	"optional.of": constant, "optional.none": constant,
}

// lengths say how long the text is that a call makes, or a little more, where it may be longer than
// what the call is given. It is paid for too.
var lengths = map[string]func(args []ref.Val) int{
	operators.Add: func(args []ref.Val) int { return textLen(args[0]) + textLen(args[1]) },
	"replace": func(args []ref.Val) int {
		text, _ := args[0].(types.String)
		old, _ := args[1].(types.String)
		return len(text) + strings.Count(string(text), string(old))*textLen(args[2])
	},
	"join": func(args []ref.Val) int {
		list, _ := args[0].(traits.Lister)
		n := items(args[0])
		length := 0
		if len(args) > 1 {
			length = max(n-1, 0) * textLen(args[1])
		}
		for i := 0; i < n && length <= maxOutput; i++ {
			length += textLen(list.Get(types.Int(i)))
		}
		return length
	},
}

func constant([]ref.Val, int) int { return 0 }

func perArgument(args []ref.Val, left int) (work int) {
	for _, v := range args {
		work += 1 + weight(v, left)
	}
	return work
}

func toTheShorterEnd(args []ref.Val, left int) int {
	a := weight(args[0], left)
	return min(a, weight(args[1], min(a, left)))
}

func search(args []ref.Val, left int) int {
	if _, ok := args[1].(traits.Mapper); ok {
		return 0
	}
	if weight(args[0], left) <= perValue { // a number, say
		return 4 * items(args[1])
	}
	return perArgument(args, left)
}

func eachWithEach(args []ref.Val, left int) int {
	return items(args[0]) * (1 + weight(args[len(args)-1], left)/8)
}

func sorting(args []ref.Val, left int) int {
	n := items(args[0])
	return (n + weight(args[0], left)) * bits.Len(uint(n))
}

func copying(args []ref.Val, _ int) int { return 8*items(args[0]) + textLen(args[0])/4 }

func reading(args []ref.Val, _ int) int { return textLen(args[0]) }

const (
	perUnit  = 8  // bytes of text that are looked at for a unit
	perValue = 16 // units for looking at a value
)

// weight is what looking at all that v holds costs. It stops beyond left.
func weight(v ref.Val, left int) int {
	rest := left * perUnit
	weigh(v, &rest, perValue*perUnit)
	if rest < 0 {
		return maxWork + 1
	}
	return left - rest/perUnit
}

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

// weigh takes a value's size off what is left, and stops where nothing is: each value weighs as much
// as some bytes of text do.
func weigh(v ref.Val, left *int, bytes int) {
	if *left -= bytes + textLen(v); *left < 0 {
		return
	}
	switch x := v.(type) {
	case traits.Mapper:
		for it := x.Iterator(); *left >= 0 && it.HasNext() == types.True; {
			key := it.Next()
			weigh(key, left, bytes)
			weigh(x.Get(key), left, bytes)
		}
	case traits.Lister:
		if items(x) > *left/bytes { // a list that was doubled over and over
			*left = -1
			return
		}
		for it := x.Iterator(); *left >= 0 && it.HasNext() == types.True; {
			weigh(it.Next(), left, bytes)
		}
	}
}

// textLen is the length of a text, and nothing of anything else.
func textLen(v ref.Val) int {
	switch x := v.(type) {
	case types.String:
		return len(x)
	case types.Bytes:
		return len(x)
	}
	return 0
}

// items is the number of items of a list, up to more than anybody can pay for, and nothing of anything else.
func items(v ref.Val) int {
	if l, ok := v.(traits.Lister); ok {
		n, _ := l.Size().(types.Int)
		return int(min(n, maxWork+1))
	}
	return 0
}

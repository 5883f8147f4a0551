package expr

import (
	"maps"
	"slices"
)

// itemType marks the variable of a foreach.
const itemType = "item"

// Item is what a foreach binds its variable to.
//
//	value   the item itself
//	key     its key; absent while the key itself is computed
//	n       its number, from 1
//	index   its number, from 0
//	first   whether it is the first
//	last    whether it is the last
//	count   how many there are
func Item(value any, key string, index, count int) map[string]any {
	m := map[string]any{
		"value": value, "n": int64(index + 1), "index": int64(index), "count": int64(count),
		"first": index == 0, "last": index == count-1,
	}
	if key != "" {
		m["key"] = key
	}
	return m
}

// itemFields are all that an item has, by name.
var itemFields = slices.Sorted(maps.Keys(Item(nil, "key", 0, 1)))

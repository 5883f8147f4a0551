package dag

// AppendJSON appends the canonical JSON (RFC 8785) of v to dst: keys in order of UTF-16 code
// units, shortest numbers, no white space. v is built from structs, slices, maps with string
// keys, pointers, strings, booleans, numbers, time.Time (RFC 3339, UTC), Duration, USD and
// json.RawMessage, which is brought into canonical form. Tags are those of encoding/json; a
// struct with omitzero is left out when nothing of it would be written. Integers beyond 2^53,
// NaN and infinities are errors: they would not be read back as they are.
func AppendJSON(dst []byte, v any) ([]byte, error) { panic("contract") }

// DecodeJSON reads src into v, a pointer. It is stricter than encoding/json: names are exact,
// an unknown or a repeated name is an error, and nothing may follow.
func DecodeJSON(src []byte, v any) error { panic("contract") }

// AppendCanonical appends the canonical form of any JSON text to dst.
func AppendCanonical(dst, src []byte) ([]byte, error) { panic("contract") }

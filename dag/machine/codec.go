package machine

// AppendPayload appends the canonical JSON (RFC 8785) of a payload to dst. It fails only when
// the payload holds what JSON cannot say exactly: malformed raw values, integers beyond 2^53.
func AppendPayload(dst []byte, b Body) ([]byte, error) { panic("contract") }

// DecodePayload reads the payload of an event of a type. Names are exact; an unknown type or
// field means that a newer version wrote the event, and is refused.
func DecodePayload(t Type, raw []byte) (Body, error) { panic("contract") }

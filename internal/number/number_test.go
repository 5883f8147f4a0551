package number

import "testing"

// What a double keeps: no integer that becomes another one, nothing that becomes infinite, or nothing.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]struct{ float, stays bool }{
		"0": {true, true}, "-0": {true, true}, "0.0e-400": {float: true}, "+.0": {float: true}, "1e308": {float: true},
		"9007199254740992": {true, true}, "9007199254740993": {float: true}, "-9007199254740993": {float: true},
		"1e400": {}, "-1e400": {}, "1e-400": {}, "5e-324": {float: true}, ".inf": {}, "inf": {}, "nan": {}, "": {}, "x": {},
		"1000000000000000000000000000000000000": {true, true}, "1000000000000000000000000000000000001": {float: true},
		"0.30000000000000004": {float: true},
	} {
		if _, ok := Float(text); ok != want.float {
			t.Errorf("%q has a double: %v", text, ok)
		}
		if Whole(text) && want.float && Stays(text) != want.stays {
			t.Errorf("%q stays: %v", text, !want.stays)
		}
	}
}

package dag

import "testing"

// A cap changes what a reader of an accumulator sees; what stands beside it does not count.
func TestFingerprintCountsCapsOfWhatIsRead(t *testing.T) {
	p := Plan{
		Accumulators: []Accumulator{{Name: "notes", Cap: 10}},
		Nodes:        []Node{{ID: "a", Kind: "exec", Reads: []string{"notes", "page.html"}}},
	}
	before := Fingerprint(&p, 0)
	p.Nodes[0].Title, p.Nodes[0].Labels = "another title", map[string]string{"role": "reader"}
	if got := Fingerprint(&p, 0); got != before {
		t.Error("a title or a label changed the fingerprint")
	}
	p.Accumulators[0].Cap = 5
	if got := Fingerprint(&p, 0); got == before {
		t.Error("another cap did not change the fingerprint of a reader")
	}
}

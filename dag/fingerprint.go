package dag

// A Part is one part of a node's fingerprint: what a plan names when it differs.
type Part struct {
	Name   string // kind, with, files, reads, writes, appends, outputs, needs, when, foreach, secrets, seed
	Digest string // lower-case hex sha256
}

// Fingerprint says what node i of p would do: equal fingerprints and equal contents of what is
// read mean equal results. Labels, titles, groups, folders, priorities, breakers, pools,
// retries, time limits, reservations and compensation do not count. What an attempt reads at
// run time (artifacts, accumulators, values) is not in it: whoever records the end of an
// attempt adds those digests.
func Fingerprint(p *Plan, i int32) string { panic("contract") }

// FingerprintParts returns the parts that Fingerprint is made of, in a fixed order.
func FingerprintParts(p *Plan, i int32) []Part { panic("contract") }

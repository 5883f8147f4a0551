// Package reuse decides what an edit of a plan leaves valid of a run. It runs, reads and records nothing: what a run
// knows comes in through the interface [Run] and as digests, verdicts with reasons go out.
//
// Compare goes over the new plan, needs before dependents, and says of each node what adopting the plan would do:
//
//	reuse     it has ended, and neither it nor anything above it has changed
//	changed   what it does has changed, or, where it failed, what is done about its failures
//	blocked   something above it runs again: it has to, too, or its result becomes stale (Maybe)
//	run       it has not ended and goes on as before
//	added     the run does not know it
//	removed   the new plan does not have it
//
// A stale result is kept, and nobody reads it. When all that its node needs has ended again, two questions follow
// each other, and the first that speaks against the result ends it. ByNeeds is what the state of the run alone can
// tell. ByInputs is what the host has to find out: whether the node's condition holds, whether an attempt now would
// be given what the recorded one was given (AttemptFingerprint), and whether what it made is as it left it. A result
// that passes is valid again as it stands, and its dependents have no reason to run either: an edit stops where
// results are equal.
//
// Where to read: facets.go is the table of what a definition consists of, and what a change of each part does;
// testdata/edits.txt shows by example what each edit does to a node and why, and is the test of it.
package reuse

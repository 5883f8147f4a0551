// Package executor is the local host of a run: it asks the machine what to do, records the
// facts and carries the work out, with one goroutine that owns the state.
//
// It decides nothing that the machine can decide, knows no kind of node but the control nodes,
// and reads no specification.
package executor

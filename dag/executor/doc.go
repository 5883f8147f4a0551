// Package executor is the local host of a run: it asks the machine what to do, records the facts and carries the work
// out, with one goroutine at a time that owns the state. It decides nothing that the machine can decide, knows no kind
// of node but the control nodes, and reads no specification.
//
// Where to read: host.go has the loop (Run, advance, wait, takeTurn), carry.go what is done about each command,
// attempt.go what goes around one attempt (a flight), stop.go what users ask of a running run.
package executor

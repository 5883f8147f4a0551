// Package cli is the command line of dagrun: each command reads flags, calls the packages under dag and prints what
// they return. It is a package of its own so that another program can offer the same commands beside its own.
//
// What happens within a run it does not decide. Its own are the terminal (screen, ask), when one tick follows another
// (ticks, watch) and what a day of them may spend, where the specification of a run lies (origin), and whether a saved
// plan still fits (apply).
package cli

import (
	"errors"
	"io"
	"os"
	"runtime"
	"slices"

	"dagrun.dev/dag/compile/source"
	"dagrun.dev/nodes/all"
)

// Main carries out the command line of the process and ends it with the exit status. It is called
// once, from main, on the main thread.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == source.ChildCommand {
		os.Exit(source.Child(os.Stdin, os.Stdout, all.Registry()))
	}
	runtime.LockOSThread() // children are started from the other threads: see package proc
	if os.Getenv("GOMAXPROCS") == "" {
		// One more than processors: while none is free, the runtime looks every 20 µs whether a system call that it has
		// lent one to lasts, and wakes a thread to take it over. Every attempt waits for its command in such a call.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
	status := make(chan int)
	go func() { status <- command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	os.Exit(<-status)
}

// command carries out one command line and returns the exit status. It is main without the
// process.
func command(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := knownCommand(root, args)
	if err == nil {
		err = root.Execute()
	}
	if err == nil {
		return exitDone
	}
	if said := exit(0); errors.As(err, &said) {
		return int(said)
	}
	if slices.Contains(args, "--json") || slices.Contains(args, "--json=true") { // flags may be what is wrong
		printErrorJSON(stdout, err)
	}
	printError(stderr, err)
	return exitStatus(err)
}

package cli

import "golang.org/x/sys/unix"

// Requests to read how a terminal is set, and to set it, dropping what was typed and is not read.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETSF
)

package proc

import "dagrun.dev/internal/printable"

// Printable makes text of a child safe for a terminal and for a log line, see printable.Text.
func Printable(s string) string { return printable.Text(s) }

// Package report renders plans, graphs and runs for people and for other programs.
//
// It reads plans, events and states; it changes nothing and runs nothing. The logs of a run are written by package
// runlog.
package report

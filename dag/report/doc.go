// Package report turns plans, graphs and runs into what people and other programs read.
//
// Each view is a struct that is computed once, from a plan or from the state and the events of a run. Its JSON is the
// struct; its text comes from a template in views.tmpl, in which every value is made safe for a terminal. The package
// changes nothing and runs nothing; the logs of a run are written by package runlog.
package report

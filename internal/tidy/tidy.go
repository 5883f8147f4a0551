// Package tidy holds the conventions of this repository as tests: who may import whom and why,
// what the core must not do, which words stay out of the Go code. It has no code of its own.
package tidy

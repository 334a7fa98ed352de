// Package archtest holds the house to its plan. Its tests fail when
//
//   - a package imports what its layer may not (layers.go holds the table);
//   - the layout slips: a file grows too long, a package does not say what it
//     is, generated code strays from its source (layout.go), a log line has a key
//     that nobody could search for (logkeys.go);
//   - the core package admission could tell two replicas apart: by a clock, a
//     goroutine, a float, the order of a map, a variable that outlives a call
//     (purity.go and the rules beside it).
//
// Nothing imports this package. The checks are ordinary functions so that each
// can be shown to bite, on made-up packages and on the sources in testdata.
package archtest

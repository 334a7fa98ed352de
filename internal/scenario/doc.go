// Package scenario runs scenario files: a policy, and tests that say in steps
// what is asked when and what must come of it. A test runs on the pure core in
// virtual time; nothing sleeps, and a day takes as long as a second.
//
// A file is read strictly: a verb, field or expectation that does not exist is
// an error with its place.
package scenario

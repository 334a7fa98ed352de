// Package scenario runs scenario files: a policy, and tests that say in steps
// what is asked when and what must come of it. A test runs on the pure core in
// virtual time; nothing sleeps, and a day takes as long as a second.
//
// A file is read strictly: a verb, field or expectation that does not exist is
// an error with its place. Part of the language belongs to features that the
// core does not have yet. A test that uses one of those is read, and fails with
// the feature's name; the other tests of the file run.
package scenario

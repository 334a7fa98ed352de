// Package policy turns policies between the three forms they have: a file that
// operators write, the message of the API, and the core's own type.
//
// The core knows the rules (admission.Policy.Validate) and names what breaks
// one by its path, for example pools[0].buckets[1].name. This package adds what
// only a file has: line and column, keys that do not exist, values of the wrong
// kind. Load reports all of it at once, so that a file is repaired in one go.
package policy

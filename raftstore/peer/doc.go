// Package peer is how the members of a cluster talk to each other: on a port of
// its own, over mutual TLS 1.3, and not a byte without it.
package peer

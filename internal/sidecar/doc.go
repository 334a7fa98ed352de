// Package sidecar serves the API to the workers of one machine, and asks the cluster
// for them.
//
// It decides nothing but what it was lent: each call is answered with what the cluster
// says, or for tokens alone from a share of them that the cluster gave it to grant from. What
// it adds is that workers need neither know where the cluster is and who leads, nor hold on to what
// they were granted:
//
//   - Acquire, Renew and Release of all workers share one stream to the node that leads;
//     what else a worker may call is passed on as it is. Calls whose repetition has the
//     effect of one are retried.
//   - A permit is renewed for as long as its worker's connection is there, at most for
//     a maximum lifetime.
//   - What a worker holds whose connection has gone is given back after a grace time.
//
// A permit belongs to the connection that named it last, by being granted it, or by
// renewing it. The sidecar keeps nothing on disk: a new one knows of a permit as soon as
// its worker renews it.
//
// # What may be lost
//
// A permit that the sidecar renews can be lost all the same: while the cluster has no
// quorum, or at its maximum lifetime. Its worker learns of it by a Renew or a Release of
// its own, or by the resource that looks at its fence.
//
// # Files
//
// sidecar.go puts the parts together; gate.go and status.go are round each call;
// admission.go answers AdmissionService by way of upstream.go, session.go the same calls on
// a worker's session, passed.go the other services. table.go knows who holds what,
// keeper.go renews and gives back. rates.go answers for tokens alone; share.go, share_book.go
// and share_due.go know what is held of them, lender.go leases it and gives it back. run.go is the process: its listener, its HTTP side and
// their order.
package sidecar

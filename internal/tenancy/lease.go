// Package tenancy is how operators share a cluster. One that looks after single
// namespaces says so by a Lease in each; one for the whole cluster leaves those
// alone as long as the Lease is renewed, and says so on the objects there. A
// Lease moves the work and nothing else: what is admitted does not depend on it.
package tenancy

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// LeaseName is the name of the Lease in every namespace.
const LeaseName = "dynamo-operator-namespace-scope"

// Claim is what a Lease says.
type Claim struct {
	Holder string
	// Until is when the claim ends unless it is renewed.
	Until time.Time
}

// Read is the claim of a Lease. One that lacks a holder or an end claims
// nothing.
func Read(lease *coordinationv1.Lease) Claim {
	s := lease.Spec
	if s.HolderIdentity == nil || *s.HolderIdentity == "" || s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return Claim{}
	}
	return Claim{*s.HolderIdentity, s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)}
}

// Live reports whether the claim holds.
func (c Claim) Live(now time.Time) bool { return c.Holder != "" && now.Before(c.Until) }

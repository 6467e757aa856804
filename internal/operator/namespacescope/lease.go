// Package namespacescope is how operators share a cluster: at any time one process writes
// to a namespace. An operator for single namespaces holds a Lease in each, one for
// the whole cluster holds one Lease of the cluster and leaves namespaces alone
// whose Lease is renewed. A Lease moves the work and nothing else: what is admitted
// does not depend on it.
//
// Clocks of different machines are never compared. A holder counts from before it
// asked for a renewal, everybody else from when they saw it, so the holder stops
// first as long as clocks run at about the same speed.
package namespacescope

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// LeaseName is the name of the Lease in every namespace that has an operator of its
// own, ClusterLeaseName of that of the operator for the whole cluster.
const (
	LeaseName        = "dynamo-operator-namespace-scope"
	ClusterLeaseName = "dynamo-cluster-scope"
)

// AnnotationElectedBy on a Lease says what sees to it that there is one holder at a
// time among those that carry the same value: they succeed each other at once.
const AnnotationElectedBy = "nvidia.com/elected-by"

// What an operator for the cluster knows of the Leases of namespaces is good for
// ViewAge. An operator for a namespace begins HandOver after it was given the Lease:
// by then the other knows, and what it had sent has arrived. They are parts of the
// protocol, since neither knows the configuration of the other.
const (
	ViewAge  = 10 * time.Second
	HandOver = 15 * time.Second
)

// What can be left out of a test's build.
const (
	GuardIdentity guard.Guard = "unique-holder"
	GuardWriter   guard.Guard = "writer"
	GuardClock    guard.Guard = "local-clock"
	GuardHandOver guard.Guard = "hand-over"
	GuardCluster  guard.Guard = "cluster-scope"
	GuardSeparate guard.Guard = "separate-claims"
)

// Identity is who holds a Lease.
type Identity struct {
	// Holder is unique for the process.
	Holder string
	// ElectedBy names what lets only one process at a time be where we are: the
	// Lease of a leader election, or the pod of a single replica. Empty if nothing
	// does.
	ElectedBy string
}

// NewIdentity is that of this process in a pod, or on a host.
func NewIdentity(namespace, name, electedBy string) Identity {
	holder := name
	if namespace != "" {
		holder = namespace + "/" + name
	}
	return Identity{Holder: holder + "_" + string(uuid.NewUUID()), ElectedBy: electedBy}
}

// Claim is what a Lease says.
type Claim struct {
	Identity
	// Duration is how long it holds after a renewal.
	Duration time.Duration
	// renewed is by the clock of the holder, which says nothing to anybody else.
	renewed time.Time
}

// Read is the claim of a Lease. One that lacks a holder, a renewal or a duration
// claims nothing.
func Read(lease *coordinationv1.Lease) Claim {
	s := lease.Spec
	claim := Claim{Identity: Identity{ElectedBy: lease.Annotations[AnnotationElectedBy]}}
	if s.LeaseDurationSeconds != nil {
		claim.Duration = time.Duration(*s.LeaseDurationSeconds) * time.Second
	}
	if s.HolderIdentity == nil || s.RenewTime == nil || claim.Duration <= 0 {
		return claim
	}
	claim.Holder, claim.renewed = *s.HolderIdentity, s.RenewTime.Time
	return claim
}

// Who is the holder without what only makes it unique.
func (c Claim) Who() string {
	name, _, _ := strings.Cut(c.Holder, "_")
	return name
}

// Follows reports whether a claim is another than the one before it: somebody else's,
// or one that had run out meanwhile by the holder's own clock.
func (c Claim) Follows(before Claim) bool {
	return c.Holder != before.Holder || c.renewed.Sub(before.renewed) >= before.Duration
}

// Seen is a Lease as it was when it was last seen to change.
type Seen struct {
	Claim
	version types.UID // of the object, and its resourceVersion
	since   time.Time
	// changed is whether it was seen to change at all: somebody renews it.
	changed bool
}

// see takes note of a Lease.
func (s Seen) see(lease *coordinationv1.Lease, now time.Time) Seen {
	version := lease.UID + types.UID("/"+lease.ResourceVersion)
	if s.version == version {
		return s
	}
	return Seen{Claim: Read(lease), version: version, since: now, changed: s.version != ""}
}

// Until is when the claim ends by our clock, unless we see it renewed.
func (s Seen) Until() time.Time {
	if GuardClock.Off() {
		return s.renewed.Add(s.Duration)
	}
	return s.since.Add(s.Duration)
}

// Live reports whether somebody holds the Lease.
func (s Seen) Live(now time.Time) bool { return s.Holder != "" && now.Before(s.Until()) }

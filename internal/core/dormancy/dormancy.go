// Package dormancy decides whether a graph that scales to zero sleeps.
//
// Dormancy is no number of replicas: whoever sets those goes on doing so, and workers have
// none of them while the graph sleeps. The signal is a Lease of the graph, named
// graph.ActivationName, whose renewTime is when the last request came; activators beside
// the frontends write it, and writing it is all that it takes to wake a graph.
//
//	          no request for so long
//	Active ----------------------------> Dormant
//	  ^                                     |
//	  | ready                               | a request
//	  +------------- Waking <---------------+
//
// It is pure, and what a Lease says is a tenant's word: a time that cannot be is none.
package dormancy

import (
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// GuardClock keeps a time that has not come yet from counting as that of a request: one
// write would hold the GPUs of a graph for good.
const GuardClock guard.Guard = "activation-clock"

// Phase is what a graph that scales to zero is in.
type Phase string

const (
	Active  Phase = "Active"
	Dormant Phase = "Dormant"
	// Waking is also what a graph is in that has never been ready.
	Waking Phase = "Waking"
)

const (
	// Skew is how far clocks may be apart. A request that came later than that has not
	// come.
	Skew = time.Minute
	// giveUp is after how long without a request workers end that never got ready.
	giveUp = 30 * time.Minute
	// wakingAgain is when a graph that wakes is looked at again.
	wakingAgain = 5 * time.Second
)

// Signal is what a graph's Lease says.
type Signal struct {
	// Made is when the Lease was, Renewed when the last request came.
	Made, Renewed time.Time
	// Written is when the API server was told so; zero if that is not known.
	Written time.Time
}

// FromLease reads the signal.
func FromLease(lease *coordinationv1.Lease) Signal {
	s := Signal{Made: lease.CreationTimestamp.Time}
	if at := lease.Spec.RenewTime; at != nil {
		s.Renewed = at.Time
	}
	for _, entry := range Renewal(lease.ManagedFields) {
		s.Written = entry.Time.Time
	}
	return s
}

// Renewal is the last write of the renewTime, if one is known, without what a tenant can
// say in it at any length.
func Renewal(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var last *metav1.Time
	for _, entry := range entries {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.Time == nil || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, renews := fields.Spec["f:renewTime"]; renews && !entry.Time.Before(last) {
			last = entry.Time
		}
	}
	if last == nil {
		return nil
	}
	return []metav1.ManagedFieldsEntry{{Time: last, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:renewTime":{}}}`)}}
}

// LastRequest is when the last one came, as far as that can be true. A time that has not
// come yet wakes nobody. It may have taken the place of one that was true, though, and who
// is awake may serve: then it counts as of when it was written, and no longer.
func (s Signal) LastRequest(now time.Time, awake bool) time.Time {
	last, renewed := s.Made, s.Renewed
	if renewed.After(now.Add(Skew)) && !GuardClock.Off() {
		renewed = s.Written
		if !awake || renewed.After(now.Add(Skew)) {
			renewed = s.Made
		}
	}
	if renewed.After(last) {
		last = renewed
	}
	if last.After(now) {
		return now
	}
	return last
}

// Seen is what a decision is made from.
type Seen struct {
	Now time.Time
	// Signal is nil while there is no Lease.
	Signal *Signal
	// Was is the phase that the graph was last said to be in; empty if none was.
	Was Phase
	// Ready says that all services run as they are to, since when.
	Ready      bool
	ReadySince time.Time
	// Rolling says that workers are being replaced.
	Rolling bool
}

// Decision is what follows.
type Decision struct {
	Phase Phase
	// LastRequest is when the last request came; zero if that is not known.
	LastRequest time.Time
	// Again is when to look again; zero if only a change of what was seen can matter.
	Again time.Duration
}

// Asleep says whether workers have no replicas.
func (d Decision) Asleep() bool { return d.Phase == Dormant }

// Decide says which phase a graph is in now.
func Decide(s Settings, seen Seen) Decision {
	if seen.Signal == nil { // it is about to be made; until then nothing changes
		d := Decision{Phase: seen.Was, Again: wakingAgain}
		if d.Phase == "" {
			d.Phase = Waking
		}
		return d
	}
	last := seen.Signal.LastRequest(seen.Now, seen.Was != Dormant)
	d := Decision{LastRequest: last}
	idle := seen.Now.Sub(last)
	if seen.Was == Dormant {
		if d.Phase = Dormant; idle < s.After {
			d.Phase, d.Again = Waking, wakingAgain
		}
		return d
	}
	if !seen.Ready || seen.Rolling {
		d.Phase, d.Again = Waking, wakingAgain
		if seen.Was == Active {
			d.Phase = Active // something else is the matter
		}
		if !seen.Rolling && idle >= max(s.After, giveUp) {
			d.Phase, d.Again = Dormant, 0
		}
		return d
	}
	// One that took longer to start than it may be idle serves at least for that long.
	if seen.ReadySince.After(last) {
		idle = seen.Now.Sub(seen.ReadySince)
	}
	if d.Phase, d.Again = Active, s.After-idle; idle >= s.After {
		d.Phase, d.Again = Dormant, 0
	}
	return d
}

// Told is the phase that conditions of a graph tell.
func Told(conditions []metav1.Condition) Phase {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionDormant)
	switch {
	case c == nil || c.Reason == v1alpha1.ReasonDormancyUnsupported:
		return ""
	case c.Status == metav1.ConditionTrue:
		return Dormant
	case c.Reason == v1alpha1.ReasonWaking:
		return Waking
	default:
		return Active
	}
}

package simulation

import (
	"math"
	"math/bits"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
)

// buckets of lengths: four to every doubling, as histograms of engines are about as
// coarse.
const buckets = 96

func bucket(tokens int32) int {
	n := uint32(max(4, tokens))
	power := bits.Len32(n) - 1
	return min(buckets-1, 4*(power-2)+int(n>>(power-2))&3)
}

// upTo is the longest of a bucket.
func upTo(b int) float64 {
	power := b/4 + 2
	return float64(uint64(5+b%4) << (power - 2))
}

// View is what a policy may see of a run: what metrics and the cluster would tell it.
type View struct {
	run *run
}

// Now is in seconds.
func (v *View) Now() float64 { return v.run.now }

// Wanted are the replicas that were asked for.
func (v *View) Wanted() decision.Vector { return v.run.wanted }

// Ready are those that take requests.
func (v *View) Ready() decision.Vector {
	return decision.Vector{v.run.prefill, v.run.serving()}
}

// Settled says whether nothing starts.
func (v *View) Settled() bool { return len(v.run.starts) == 0 }

// closed are the last whole slots, of so many seconds together.
func (v *View) closed(seconds float64) []Count {
	all := v.run.result.Slots
	all = all[:len(all)-1] // the one that has just begun
	return all[max(0, len(all)-int(seconds/Slot)):]
}

// Mean are the mean numbers of requests in prefill, waiting ones included, and in
// decode.
func (v *View) Mean(seconds float64) (inPrefill, active float64) {
	slots := v.closed(seconds)
	for i := range slots {
		inPrefill += slots[i].inPrefill
		active += slots[i].active
	}
	length := float64(max(1, len(slots)) * Slot)
	return inPrefill / length, active / length
}

// Snapshot is what the native policy is given every slot.
func (v *View) Snapshot() decision.Snapshot {
	r := v.run
	// A planner asks for a start at one look, and sees that it is over at another.
	startup := math.Ceil(r.Startup/Slot) * Slot
	s := decision.Snapshot{
		Now: time.Duration(r.now * float64(time.Second)), Queue: float64(r.arrived - r.served), Active: float64(r.active),
		Startup: time.Duration(startup * float64(time.Second)), Lengths: v.lengths(300),
	}
	last := v.closed(Slot)
	for i := range last {
		s.Bins = append(s.Bins, float64(last[i].Began))
		s.Observed = capacity.Observation{Requests: min(last[i].firsts, last[i].Ended)}
		if s.Observed.Requests > 0 {
			s.Observed.FirstToken, s.Observed.Token = last[i].first/float64(last[i].firsts), last[i].token/float64(last[i].Ended)
		}
	}
	ready := v.Ready()
	for role := range decision.Role(decision.Roles) {
		state := &s.Roles[role]
		state.Wanted, state.Ready = r.wanted[role], ready[role]
		for _, x := range r.starts {
			if x.role == role {
				state.Starting = append(state.Starting, time.Duration((r.now-x.began)*float64(time.Second)))
			}
		}
	}
	s.Roles[decision.Prefill].Draining = max(0, len(r.computing)-r.prefill)
	s.Roles[decision.Decode].Draining = len(r.decode) - ready[decision.Decode]
	return s
}

// lengths are those of the prompts that came and of the answers that ended.
func (v *View) lengths(seconds float64) capacity.Lengths {
	var l capacity.Lengths
	var began, ended int
	var input, square, output float64
	var histogram [buckets]int
	slots := v.closed(seconds)
	for i := range slots {
		s := &slots[i]
		began += s.Began
		ended += s.Ended
		input += s.input
		square += s.inputSquare
		output += s.output
		for b, n := range s.lengths {
			histogram[b] += int(n)
		}
	}
	if began > 0 {
		l.Input = input / float64(began)
		l.InputSpread = max(0, square/float64(began)/(l.Input*l.Input)-1)
		left := (began*95 + 99) / 100
		for b, n := range &histogram {
			if left -= n; left <= 0 {
				l.Input95 = upTo(b)
				break
			}
		}
	}
	if ended > 0 {
		l.Output = output / float64(ended)
	}
	return l
}

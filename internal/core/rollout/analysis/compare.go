package analysis

import "net/netip"

// Comparison is a candidate beside the stable generation of one cell, and who is to be
// asked about them.
type Comparison struct {
	// Cell is named by its services.
	Cell              string
	Candidate, Stable string
	// Revision is the number of what is rolled out: a retry has another.
	Revision int64
	// Pods are sorted by uid.
	Pods []Pod
}

// Pod is one that counts requests.
type Pod struct {
	UID     string
	Address netip.Addr
	Port    uint16
	// Candidate says that it is of the candidate; otherwise it is of the stable generation.
	Candidate bool
	Duty      Duty
}

// Duty is what a pod has to do with a request. What several count of the same request
// must count once.
type Duty struct {
	// Entry pods see every request that their generation gets, and its tokens.
	Entry bool
	// FirstToken pods are the ones that a first token waits for: those that prefill or,
	// where none does, the entries.
	FirstToken bool
}

// Of is what counts of that which a pod has counted. Errors of all do: a request that
// fails before it comes to an entry is counted there by nobody.
func (d Duty) Of(c Counters) Counters {
	if !d.Entry {
		c.Requests, c.ITL = 0, nil
	}
	if !d.FirstToken {
		c.TTFT = nil
	}
	return c
}

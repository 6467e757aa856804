package trace

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Bins are how many requests came when, as a planner has seen them.
type Bins struct {
	// Graph is whose requests they are.
	Graph string `json:"graph,omitempty"`
	// Tick is the length of a bin in seconds.
	Tick float64 `json:"tick"`
	Bins []Bin   `json:"bins"`
}

// Bin is a tick in which requests came.
type Bin struct {
	// At is its end, in seconds since any moment. Time in which nobody looked does not count.
	At       float64 `json:"at"`
	Requests float64 `json:"requests"`
	// Input and Output are the mean lengths in tokens of those that were seen then; 0 where
	// none were.
	Input  float64 `json:"input,omitempty"`
	Output float64 `json:"output,omitempty"`
}

// day is for how many seconds bins are kept, and Kept how many: those of 5 s each.
const (
	day  = 24 * 60 * 60
	Kept = day / 5
)

// Add takes in a bin and forgets those of more than a day before. One without requests is told
// by those around it.
func (b *Bins) Add(next Bin) {
	for len(b.Bins) > 0 && b.Bins[0].At < next.At-day {
		b.Bins = b.Bins[1:]
	}
	if !(next.Requests > 0) || math.IsInf(next.Requests, 0) {
		return
	}
	for _, length := range []*float64{&next.Input, &next.Output} {
		if !(*length > 0) || math.IsInf(*length, 0) {
			*length = 0
		}
		*length = math.Round(*length)
	}
	next.At, next.Requests = math.Round(10*next.At)/10, math.Round(100*next.Requests)/100
	b.Bins = append(b.Bins[max(0, len(b.Bins)-Kept+1):], next)
}

// mostRequests is how many a trace of bins may have, and mostSeconds over how long they may
// be spread, which is a month: whoever tells of more is not believed.
const (
	mostRequests = 20_000_000
	mostSeconds  = 31 * day
)

// Trace are requests that come as the bins say: in each at times of chance, and all of the mean
// lengths that were seen then, or last before.
func (b Bins) Trace(chance *rand.Rand) (Trace, error) {
	if !(b.Tick > 0) || b.Tick > 3600 {
		return nil, fmt.Errorf("bins of %v s", b.Tick)
	}
	if len(b.Bins) > Kept {
		return nil, fmt.Errorf("%d bins are more than the %d that a planner keeps", len(b.Bins), Kept)
	}
	first := slices.IndexFunc(b.Bins, func(x Bin) bool { return x.Input > 0 && x.Output > 0 })
	if first < 0 {
		return nil, errors.New("no requests were seen whose lengths are known")
	}
	input, output, total := b.Bins[first].Input, b.Bins[first].Output, 0.0
	var t Trace
	for i, x := range b.Bins {
		// Their span is no number where a time is none.
		if total += x.Requests; !(x.Requests >= 0) || !(total <= mostRequests) || !(x.At-b.Bins[0].At <= mostSeconds) || i > 0 && x.At < b.Bins[i-1].At {
			return nil, fmt.Errorf("bin %d is none: %+v", i, x)
		}
		if x.Input > 0 && x.Output > 0 {
			input, output = x.Input, x.Output
		}
		n := int(x.Requests + chance.Float64())
		for range n {
			t = t.add(x.At-b.Tick*chance.Float64(), int64(min(input, math.MaxInt32)), int64(min(output, math.MaxInt32)))
		}
	}
	return t.begun()
}

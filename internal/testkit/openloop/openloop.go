// Package openloop sends requests at times that were fixed beforehand. A sender
// that waits for answers before it asks again (a closed loop) asks less the slower
// the answers are, and so hides the very moments that a test is about. Here a
// latency counts from the planned time, a request is sent once, and nobody retries.
package openloop

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Poisson plans arrivals of independent users: rate a second on average, for a
// duration. The same seed plans the same times.
func Poisson(rate float64, duration time.Duration, seed uint64) []time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	var arrivals []time.Duration
	for at := time.Duration(0); ; {
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		if at >= duration {
			return arrivals
		}
		arrivals = append(arrivals, at)
	}
}

// Outcome is what became of one request. Times count from the begin of the run.
type Outcome struct {
	Planned time.Duration
	// Sent is later than Planned by as much as the sender itself was late.
	Sent  time.Duration
	Ended time.Duration
	Err   error
}

// Latency is how long a user waited who came at the planned time.
func (o Outcome) Latency() time.Duration { return o.Ended - o.Planned }

// Run sends a request for each arrival, in the order given, until ctx ends; what
// is under way then is waited for, so send bounds its own time. Requests that were
// never sent are not among the outcomes.
func Run(ctx context.Context, arrivals []time.Duration, send func(n int) error) []Outcome {
	begin := time.Now()
	outcomes, sent := make([]Outcome, len(arrivals)), 0
	var all sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n, planned := range arrivals {
		timer.Reset(planned - time.Since(begin))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		sent++
		all.Go(func() {
			at := time.Since(begin)
			err := send(n)
			outcomes[n] = Outcome{Planned: planned, Sent: at, Ended: time.Since(begin), Err: err}
		})
	}
	all.Wait()
	return outcomes[:sent]
}

// Failed are the outcomes with an error.
func Failed(outcomes []Outcome) []Outcome {
	var failed []Outcome
	for _, o := range outcomes {
		if o.Err != nil {
			failed = append(failed, o)
		}
	}
	return failed
}

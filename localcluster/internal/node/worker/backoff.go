package worker

import "time"

// Backoff is the pause between a container's end and its next start: none the
// first time, then Base, doubled each time up to Max.
//
// A kubelet has 10 s and 5 min. A local cluster is there to be tried out, and
// whoever mends a crashing container waits for it: so the default is 1 s and
// 30 s.
type Backoff struct {
	Base, Max time.Duration
}

// DefaultBackoff is for those who do not care.
var DefaultBackoff = Backoff{Base: time.Second, Max: 30 * time.Second}

// after is the pause after so many ends in a row.
func (b Backoff) after(ends int) time.Duration {
	d := b.Base
	for i := 2; i < ends && d < b.Max; i++ {
		d *= 2
	}
	if ends < 2 {
		return 0
	}
	return min(d, b.Max)
}

// forgiven reports a run so long that what happened before does not count, by
// the kubelet's rule of twice the longest pause.
func (b Backoff) forgiven(run time.Duration) bool { return run >= 2*b.Max }

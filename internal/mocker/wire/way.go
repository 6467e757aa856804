package wire

import (
	"sync/atomic"
	"time"
)

// way is how long requests are under way to workers and their first chunks back:
// what passes beside the time that a worker itself accounts for. No two clocks
// are compared.
type way struct{ nanos atomic.Int64 }

// longestWay bounds what one call can teach: a stalled one says nothing about
// the next.
const longestWay = 10 * time.Millisecond

func (w *way) usual() time.Duration { return time.Duration(w.nanos.Load()) }

// learn moves towards what was seen, an eighth of the way at a time.
func (w *way) learn(seen time.Duration) {
	seen = min(max(0, seen), longestWay)
	for {
		old := w.nanos.Load()
		if w.nanos.CompareAndSwap(old, old+(int64(seen)-old)/8) {
			return
		}
	}
}

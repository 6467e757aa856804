package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/queue"
)

// Patience puts reports on objects whose children are just being made or changed
// off until those have something to say: what they were before is not worth a
// status. It ends after a while, so that an object whose children never rest is
// still reported. The zero value has no patience.
type Patience struct {
	// For is how long reports are put off at most.
	For time.Duration

	mu    sync.Mutex
	since map[types.UID]time.Time
}

// PutOff reports whether this pass over an object, whose children have or have
// not settled, ends without a report. Nil has no patience.
func (p *Patience) PutOff(uid types.UID, settled bool, now time.Time) (reconcile.Result, bool) {
	if p == nil || p.For == 0 {
		return reconcile.Result{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	since, waiting := p.since[uid]
	if settled || (waiting && now.Sub(since) >= p.For) {
		delete(p.since, uid)
		return reconcile.Result{}, false
	}
	if !waiting {
		if p.since == nil {
			p.since = map[types.UID]time.Time{}
		}
		since = now
		p.since[uid] = now
	}
	return reconcile.Result{RequeueAfter: p.For - now.Sub(since), Priority: new(queue.News)}, true
}

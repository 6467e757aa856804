package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Patience puts the report of a pass that wrote children off to the pass that
// the change of those children brings: what they were before is not worth a
// status. An object is put off once in a row, so that one whose children never
// rest is still reported. The zero value has no patience.
type Patience struct {
	// For is how long a report is put off if no child brings the next pass.
	For time.Duration

	mu     sync.Mutex
	waited map[types.UID]bool
}

// PutOff reports whether this pass over an object ends without a report. Nil
// has no patience.
func (p *Patience) PutOff(uid types.UID, wrote bool) (reconcile.Result, bool) {
	if p == nil || p.For == 0 {
		return reconcile.Result{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !wrote || p.waited[uid] {
		delete(p.waited, uid)
		return reconcile.Result{}, false
	}
	if p.waited == nil {
		p.waited = map[types.UID]bool{}
	}
	p.waited[uid] = true
	return reconcile.Result{RequeueAfter: p.For}, true
}

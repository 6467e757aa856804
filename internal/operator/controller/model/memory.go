package model

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/lora"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// settleTime gathers the outcomes of several calls into one reconcile.
const settleTime = 100 * time.Millisecond

// memory keeps what is known of engines from one reconcile to the next. It is lost
// with the process; the note on the model and the engines' own lists make up
// for it.
type memory struct {
	mu     sync.Mutex
	models map[types.UID]loraplan.Memory
}

// plan decides with what is known now and keeps what follows. A model that was
// held before the memory began may have adapters in engines already.
func (m *memory) plan(uid types.UID, held bool, decide func(loraplan.Memory) loraplan.Plan) loraplan.Plan {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, found := m.models[uid]
	if !found {
		known.Inherited = held
	}
	p := decide(known)
	if found || len(p.Calls) > 0 { // who was never called is never unloaded, and so never forgotten
		if m.models == nil {
			m.models = map[types.UID]loraplan.Memory{}
		}
		m.models[uid] = p.Memory
	}
	return p
}

// change replaces what is known of an engine; false for a model that was forgotten.
func (m *memory) change(uid types.UID, run loraplan.Run, change func(loraplan.Engine) loraplan.Engine) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, found := m.models[uid]
	if found {
		known.Engines[run] = change(known.Engines[run])
	}
	return found
}

// engine is what is known of one; false for a model that was forgotten.
func (m *memory) engine(uid types.UID, run loraplan.Run) (loraplan.Engine, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, found := m.models[uid]
	return known.Engines[run], found
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.models, uid)
}

// start queues calls and remembers what comes of them. A load whose model is gone
// when it comes back is taken back. Calls outlive the reconcile, which goes on to
// write into the model: they have a copy.
func (r *Reconciler) start(dm *v1alpha1.DynamoModel, calls []loraplan.Call) {
	if len(calls) == 0 {
		return
	}
	dm = dm.DeepCopy()
	uid, key := dm.UID, client.ObjectKeyFromObject(dm)
	for _, call := range calls {
		run := call.Endpoint.Run
		r.memory.change(uid, run, func(e loraplan.Engine) loraplan.Engine {
			e.Busy = true
			return e
		})
		r.Caller.Start(lora.Request{
			Namespace: dm.Namespace, Call: call,
			Wanted: func(ctx context.Context) bool { return r.stillWanted(ctx, dm, call) },
			Done: func(o loraplan.Outcome) {
				known := r.memory.change(uid, run, func(e loraplan.Engine) loraplan.Engine {
					return e.After(call, o, r.Backoff, r.Clock.Now())
				})
				if !known && call.Task.Verb == loraplan.Load && (!o.Skipped || o.Unsure) {
					r.takeBack(dm, call)
				}
				r.Wake(key, settleTime)
			},
		})
	}
}

// stillWanted reports whether a call that has waited for its turn would be planned
// now, by what the informers hold of its model.
func (r *Reconciler) stillWanted(ctx context.Context, planned *v1alpha1.DynamoModel, call loraplan.Call) bool {
	engine, known := r.memory.engine(planned.UID, call.Endpoint.Run)
	dm, err := r.Models.Current(ctx, planned)
	if err != nil || dm == nil || !known || (dm.DeletionTimestamp == nil && validation.Fault(validation.Model(dm)) != nil) {
		return false
	}
	w, err := r.Models.World(ctx, dm)
	if err != nil {
		return false
	}
	in := loraplan.Intent{Noted: noted(dm)}
	if dm.DeletionTimestamp == nil {
		in.Adapter = effective(dm, w)
	}
	return loraplan.Wanted(in, w, engine, call)
}

// takeBack unloads what a load that was under way when its model went has brought
// into an engine.
func (r *Reconciler) takeBack(dm *v1alpha1.DynamoModel, load loraplan.Call) {
	unload := load
	unload.Task.Verb = loraplan.Unload
	r.Caller.Start(lora.Request{
		Namespace: dm.Namespace, Call: unload,
		Wanted: func(ctx context.Context) bool {
			w, err := r.Models.World(ctx, dm)
			return err == nil && loraplan.Abandoned(w, load)
		},
		Done: func(loraplan.Outcome) {}, // nobody is left to be told
	})
}

package model

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/model"
)

// settleTime gathers the outcomes of several calls into one pass.
const settleTime = 100 * time.Millisecond

// memory keeps what is known of engines from one pass to the next. It is lost
// with the process; the note on the model and the engines' own lists make up
// for it.
type memory struct {
	mu     sync.Mutex
	models map[types.UID]model.Memory
}

// plan decides with what is known now and keeps what follows. A model that was
// held before the memory began may have adapters in engines already.
func (m *memory) plan(uid types.UID, held bool, decide func(model.Memory) model.Plan) model.Plan {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, found := m.models[uid]
	if !found {
		known.Inherited = held
	}
	p := decide(known)
	if found || len(p.Calls) > 0 { // who was never called is never unloaded, and so never forgotten
		if m.models == nil {
			m.models = map[types.UID]model.Memory{}
		}
		m.models[uid] = p.Memory
	}
	return p
}

func (m *memory) change(uid types.UID, run model.Run, change func(model.Engine) model.Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, found := m.models[uid]; found {
		known.Engines[run] = change(known.Engines[run])
	}
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.models, uid)
}

// start makes calls and remembers what comes of them.
func (r *Reconciler) start(dm *v1alpha1.DynamoModel, calls []model.Call) {
	uid, key := dm.UID, client.ObjectKeyFromObject(dm)
	for _, call := range calls {
		run := call.Endpoint.Run
		r.memory.change(uid, run, func(e model.Engine) model.Engine {
			e.Busy = true
			return e
		})
		r.Caller.Start(call, func(o model.Outcome) {
			r.memory.change(uid, run, func(e model.Engine) model.Engine {
				return e.After(call, o, r.Backoff, r.Clock.Now())
			})
			r.Wake(key, settleTime)
		})
	}
}

package console

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/console/view"
)

// past remembers how graphs changed since the console was started: a status tells what
// is so now, and a chart needs what was.
type past struct {
	mu     sync.Mutex
	graphs map[types.NamespacedName][]view.Moment
}

func newPast() *past { return &past{graphs: map[types.NamespacedName][]view.Moment{}} }

// note keeps what is seen of a graph, if it is something else than before.
func (p *past) note(dgd *v1alpha1.DynamoGraphDeployment, adapters []v1alpha1.DynamoGraphDeploymentScalingAdapter, now time.Time) {
	key, m := client.ObjectKeyFromObject(dgd), view.MomentOf(dgd, adapters, now)
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.graphs[key]
	if n := len(all); n > 0 && (all[n-1].Same(m) || !all[n-1].At.Before(now)) {
		return
	}
	all = append(all, m)
	p.graphs[key] = all[max(0, len(all)-remembered):]
}

func (p *past) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.graphs, key)
}

// of is what was seen of a graph. What it returns is not changed later.
func (p *past) of(key types.NamespacedName) []view.Moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.graphs[key]
}

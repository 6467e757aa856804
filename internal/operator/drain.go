package operator

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
)

// drained is a context that outlives ctx by the time it takes to work off what
// stands in line, limited. A replica that does not lead has nobody to work off
// anything.
func drained(ctx context.Context, mgr manager.Manager, lines *queue.Queues, limit time.Duration) (context.Context, context.CancelFunc) {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer end()
		if !leads(mgr) || limit == 0 {
			return
		}
		limited, cancel := context.WithTimeout(work, limit)
		defer cancel()
		if left := lines.Drain(limited); left > 0 {
			log.FromContext(ctx).Info("stopping with objects still queued", "objects", left, "limit", limit)
		}
	})
	return work, func() { stop(); end() }
}

package queue

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Backoff doubles the wait of an object with each failure in a row, and lets the
// objects of one namespace retry at most so often a second, after a burst. A limit
// for all namespaces together would let one whose objects fail hold the others up.
func Backoff(base, limit time.Duration, perSecond float64, burst int) workqueue.TypedRateLimiter[reconcile.Request] {
	exponential := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](base, limit)
	if perSecond == 0 {
		return exponential
	}
	return workqueue.NewTypedMaxOfRateLimiter[reconcile.Request](exponential, &namespaceRetries{
		perSecond: rate.Limit(perSecond), burst: burst, buckets: map[string]*rate.Limiter{}, now: time.Now,
	})
}

// namespaceRetries is a bucket of retries for each namespace.
type namespaceRetries struct {
	perSecond rate.Limit
	burst     int
	now       func() time.Time

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	swept   time.Time
}

// When takes a token of the namespace's bucket, and says when it is due.
func (n *namespaceRetries) When(item reconcile.Request) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	n.sweep(now)
	if n.buckets[item.Namespace] == nil {
		n.buckets[item.Namespace] = rate.NewLimiter(n.perSecond, n.burst)
	}
	return n.buckets[item.Namespace].ReserveN(now, 1).DelayFrom(now)
}

// sweep forgets, every now and then, the buckets that are full again.
func (n *namespaceRetries) sweep(now time.Time) {
	if now.Sub(n.swept) < time.Minute {
		return
	}
	n.swept = now
	for namespace, bucket := range n.buckets {
		if bucket.TokensAt(now) >= float64(n.burst) {
			delete(n.buckets, namespace)
		}
	}
}

// Forget is for the other limiter: a bucket fills up by itself.
func (n *namespaceRetries) Forget(reconcile.Request) {}

// NumRequeues is counted by the other limiter.
func (n *namespaceRetries) NumRequeues(reconcile.Request) int { return 0 }

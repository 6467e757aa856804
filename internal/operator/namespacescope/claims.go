package namespacescope

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Claims are the Leases of an operator: one for each of its namespaces, or, under the
// empty name, the one of the cluster. Each is held for itself: what becomes of one
// namespace does not concern the others.
type Claims struct {
	Holders map[string]*Holder

	mu   sync.Mutex
	stop context.CancelFunc
	done sync.WaitGroup
}

// NeedLeaderElection is true: Leases are the leader's, so a replica that ends does
// not end the claims of the others.
func (c *Claims) NeedLeaderElection() bool { return true }

// Start asks for the Leases. It goes on when ctx ends, until Release: a claim
// outlives the work that is done under it.
func (c *Claims) Start(ctx context.Context) error {
	ended := c.start(ctx)
	if !GuardSeparate.Off() {
		return nil
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// start runs the holders. It hears from one that has ended.
func (c *Claims) start(ctx context.Context) <-chan error {
	c.mu.Lock()
	defer c.mu.Unlock()
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	ended := make(chan error, len(c.Holders))
	for _, namespace := range slices.Sorted(maps.Keys(c.Holders)) {
		c.done.Go(func() { ended <- c.Holders[namespace].Run(run) })
	}
	return ended
}

// Release gives all Leases back, after the last write.
func (c *Claims) Release(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil {
		return nil // never led
	}
	c.stop()
	c.done.Wait()
	var errs []error
	for _, holder := range c.Holders {
		errs = append(errs, holder.Release(ctx))
	}
	return errors.Join(errs...)
}

// of is the holder of a namespace.
func (c *Claims) of(namespace string) *Holder {
	if h := c.Holders[namespace]; h != nil {
		return h
	}
	return c.Holders[""]
}

// Left is for how long a namespace may be written to.
func (c *Claims) Left(_ context.Context, namespace string) (time.Duration, error) {
	if h := c.of(namespace); h != nil {
		return h.Left()
	}
	if namespace == "" {
		return time.Hour, nil // of no namespace, so nobody's claim
	}
	return 0, fmt.Errorf("%w: namespace %s is not among the operator's", ErrNotWriter, namespace)
}

// Term ends when a namespace is lost.
func (c *Claims) Term(namespace string) context.Context {
	if h := c.of(namespace); h != nil {
		return h.Context()
	}
	return context.Background()
}

// Idle says why this operator has nothing to do: who else is seen to hold what it is
// for, or that it has no right to. It is nil if anything is left, or may be soon.
func (c *Claims) Idle() error {
	var problems []string
	for _, namespace := range slices.Sorted(maps.Keys(c.Holders)) {
		if c.Holders[namespace].Refused() {
			problems = append(problems, fmt.Sprintf("Lease %s is forbidden", c.Holders[namespace].Lease))
			continue
		}
		rival := c.Holders[namespace].Rival()
		if rival == "" {
			return nil
		}
		what := "namespace " + namespace
		if namespace == "" {
			what = "this cluster"
		}
		problems = append(problems, fmt.Sprintf("%s already has an operator, %s (Lease %s)", what, rival, c.Holders[namespace].Lease))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

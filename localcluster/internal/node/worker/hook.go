package worker

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/process"
)

// longestHook bounds a request of a hook that nothing else bounds.
const longestHook = 30 * time.Second

// afterStart carries out the postStart hook.
func (c *container) afterStart(ctx context.Context, l *launch) error {
	if l.spec.Lifecycle == nil || l.spec.Lifecycle.PostStart == nil {
		return nil
	}
	return c.carryOut(ctx, l, "postStart", l.spec.Lifecycle.PostStart)
}

// beforeStop carries out the preStop hook, within what kill leaves of the grace
// period. A node that is cut off or shut down has no time for it.
func (c *container) beforeStop(kill context.Context, l *launch, proc process.Process) {
	c.w.mu.Lock()
	silent := c.w.silent
	c.w.mu.Unlock()
	if silent || l.spec.Lifecycle == nil || l.spec.Lifecycle.PreStop == nil {
		return
	}
	ctx, cancel := context.WithCancel(kill)
	defer cancel()
	go func() {
		select {
		case <-proc.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := c.carryOut(ctx, l, "preStop", l.spec.Lifecycle.PreStop); err != nil {
		c.w.event(&l.spec, corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed: %v", err)
	}
}

func (c *container) carryOut(ctx context.Context, l *launch, name string, h *corev1.LifecycleHandler) error {
	switch {
	case h.Sleep != nil:
		pause(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
	case h.HTTPGet != nil:
		if !l.program.Played() {
			return nil // nobody there to answer
		}
		answer := make(chan error, 1)
		go func() { answer <- c.w.host.Prober.Get(h.HTTPGet, &l.spec, c.w.Host(), longestHook) }()
		select {
		case err := <-answer:
			return err
		case <-ctx.Done():
		}
	case h.Exec != nil:
		c.w.warn("exec/"+c.name+"/"+name, &l.spec, "ExecNotRun", "The %s hook would run a program in the container; here it is passed over", name)
	}
	return nil
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/tracing"
)

// Guard stands around the reconciler of a kind: it keeps namespaces out that are
// not ours, turns panics into errors, counts, traces, and gives up on what
// failed too often.
type Guard struct {
	Kind string
	Do   reconcile.Reconciler
	// Covers tells which namespaces are ours to look after.
	Covers func(namespace string) bool
	// While is a context that ends, with a cause, when the namespace is no longer
	// ours to write to, or the operator has waited for its end for long enough.
	While   func(ctx context.Context, namespace string) (context.Context, context.CancelFunc)
	Metrics *metric.Metrics
	Tracer  *tracing.Tracer
	Causes  *queue.Causes
	Retries *Retries
}

// Reconcile runs the guarded reconciler.
func (g *Guard) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !g.Covers(request.Namespace) {
		return reconcile.Result{}, nil
	}
	begin := time.Now()
	ctx, span := g.Tracer.Pass(ctx, g.Kind, request.Namespace, request.Name, g.Causes.Take(request))
	result, err := g.pass(ctx, request)
	ended := ending(result, err)
	g.Metrics.Pass(g.Kind, request.Namespace, ended, time.Since(begin), err)
	tracing.End(span, string(ended), err)
	if g.Retries.Exhausted(request, err) {
		g.Metrics.GaveUp(g.Kind, request.Namespace)
		return reconcile.Result{}, g.Retries.GiveUp(ctx, request, err)
	}
	return result, err
}

// pass runs a reconcile that cannot take the operator down, and that an operator which
// is told to end does not take down with it at once, so that nothing is left half
// done: once begun it ends by itself, by its deadline, by the end of the grace
// period, or because somebody else is to write.
func (g *Guard) pass(outer context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	if outer.Err() != nil {
		return reconcile.Result{}, context.Cause(outer)
	}
	ctx, cancel := g.While(context.WithoutCancel(outer), request.Namespace)
	defer cancel()
	if deadline, limited := outer.Deadline(); limited {
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Error(nil, "a pass panicked", "panic", r, "stack", string(debug.Stack()))
			result, err = reconcile.Result{}, fmt.Errorf("panic: %v", r)
		}
	}()
	result, err = g.Do.Reconcile(ctx, request)
	for _, of := range []context.Context{outer, ctx} {
		if cause := context.Cause(of); err != nil && ctx.Err() != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
	}
	return result, err
}

func ending(result reconcile.Result, err error) metric.Result {
	switch {
	case err != nil:
		return metric.Error
	case result.RequeueAfter > 0:
		return metric.Requeue
	default:
		return metric.Success
	}
}

// Package retryclient retries requests that an API server could not answer: a busy
// machine may be late with a webhook's answer, and a killed server is away for a
// while. A refusal is not retried. Tests about failing answers must not use it.
package retryclient

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pause is taken before a question is put again, patience is how long this goes
// on.
const (
	pause       = 250 * time.Millisecond
	giveUpAfter = 3 * time.Minute
)

// Client is a client whose requests are repeated until they are answered.
func Client(impatient client.WithWatch) client.WithWatch { return steady{impatient} }

// Unanswered reports whether an error says nothing about what was asked.
func Unanswered(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		apierrors.IsInternalError(err) || // of a webhook that is not reached, or of etcd
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// insist asks until there is an answer. An answer that got lost may have been
// given: meant says of an error that comes after it that all is as it should be.
func insist(ctx context.Context, ask func() error, meant func(error) bool) error {
	lost := false
	for deadline := time.Now().Add(giveUpAfter); ; {
		err := ask()
		if lost && err != nil && meant(err) {
			return nil
		}
		if !Unanswered(err) || time.Now().After(deadline) {
			return err
		}
		lost = true
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func never(error) bool { return false }

type steady struct{ client.WithWatch }

func (c steady) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return insist(ctx, func() error { return c.WithWatch.Get(ctx, key, into, options...) }, never)
}

func (c steady) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return insist(ctx, func() error { return c.WithWatch.List(ctx, into, options...) }, never)
}

func (c steady) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return insist(ctx, func() error { return c.WithWatch.Create(ctx, object, options...) }, func(err error) bool {
		return apierrors.IsAlreadyExists(err) && c.Get(ctx, client.ObjectKeyFromObject(object), object) == nil
	})
}

func (c steady) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return insist(ctx, func() error { return c.WithWatch.Delete(ctx, object, options...) }, apierrors.IsNotFound)
}

func (c steady) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return insist(ctx, func() error { return c.WithWatch.Update(ctx, object, options...) }, never)
}

func (c steady) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return insist(ctx, func() error { return c.WithWatch.Patch(ctx, object, patch, options...) }, never)
}

func (c steady) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	return insist(ctx, func() error { return c.WithWatch.Apply(ctx, object, options...) }, never)
}

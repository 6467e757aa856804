// Package account removes the ServiceAccounts and RoleBindings that the graphs of a
// namespace share, once nobody there needs them. Graphs make them; none owns them,
// because a list of all owners would grow with the namespace.
package account

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
)

// Reconciler looks at one namespace a reconcile; requests have no name.
type Reconciler struct {
	// Cached reads from the informers, Direct from the API server.
	Cached, Direct client.Reader
	Applier        *apply.Applier
	Roles          render.Roles
	// Covers reports whether a namespace is ours to look after.
	Covers func(namespace string) bool
}

// Reconcile removes what the namespace does not need any more. A graph that comes
// at the same moment is woken by the deletion and makes it again.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.Covers(request.Namespace) {
		return reconcile.Result{}, nil
	}
	var errs []error
	for _, shared := range render.SharedAccounts(r.Roles) {
		errs = append(errs, r.remove(ctx, request.Namespace, shared))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// remove asks the informers first and the API server before it deletes: only the
// server knows of a graph that was made a moment ago.
func (r *Reconciler) remove(ctx context.Context, namespace string, shared render.SharedAccount) error {
	for _, reader := range []client.Reader{r.Cached, r.Direct} {
		users, err := observe.AccountUsers(ctx, reader, namespace)
		if err != nil || shared.Needed(users) {
			return err
		}
		objects, err := observe.AccountObjects(ctx, reader, namespace, shared.Account, shared.Binding)
		if err != nil || len(objects) == 0 {
			return err
		}
		if reader == r.Cached {
			continue
		}
		for _, object := range objects {
			if !shared.Made(object) || object.GetDeletionTimestamp() != nil {
				continue
			}
			if err := r.Applier.Discard(ctx, object); err != nil {
				return fmt.Errorf("remove %s, which no graph of %s needs: %w", shared.Account, namespace, err)
			}
		}
	}
	return nil
}

package installation

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// Retire ends an operator that is about to be removed, has nothing served any more that
// it converted, and takes its finalizer off what it looked after: its namespaces, or all. Nobody is left to do it later, and objects and
// their namespaces could never be deleted. Nothing is deleted here.
func (i Installer) Retire(ctx context.Context, operator types.NamespacedName, namespaces []string, out io.Writer) error {
	if err := i.stop(ctx, operator); err != nil {
		return err
	}
	if len(namespaces) == 0 { // one of single namespaces converts nothing
		if err := i.WithdrawBeta(ctx, out); err != nil {
			return err
		}
	}
	return i.FreeAll(ctx, namespaces, out)
}

// stop scales the operator to nothing and waits for its pods to end: one that still runs
// would put the finalizer back.
func (i Installer) stop(ctx context.Context, operator types.NamespacedName) error {
	d := &appsv1.Deployment{}
	if err := i.Client.Get(ctx, operator, d); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil
		}
		return fmt.Errorf("read Deployment %s: %w", operator, err)
	}
	if err := i.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))); err != nil {
		return fmt.Errorf("scale Deployment %s to 0: %w", operator, err)
	}
	return until(ctx, "the operator's pods to end", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := i.Client.List(ctx, &pods, client.InNamespace(operator.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are left, such as %s", len(pods.Items), pods.Items[0].Name)
		}
		return nil
	})
}

// FreeAll takes the operator's finalizer off all kinds in namespaces, or in all that no
// other operator looks after, and says how many objects stay.
func (i Installer) FreeAll(ctx context.Context, namespaces []string, out io.Writer) error {
	var others []string
	if len(namespaces) == 0 {
		var err error
		if others, err = i.others(ctx); err != nil {
			return err
		}
	}
	mine := func(namespace string) bool { return !slices.Contains(others, namespace) }
	where := namespaces
	if len(where) == 0 {
		where = []string{metav1.NamespaceAll}
	}
	for _, kind := range Kinds() {
		stay := 0
		for _, namespace := range where {
			n, err := i.free(ctx, kind, namespace, mine)
			if err != nil {
				return err
			}
			stay += n
		}
		if stay > 0 {
			fmt.Fprintf(out, "✓ %d %s stay and can be deleted without the operator\n", stay, kind.Kind)
		}
	}
	return nil
}

// others are the namespaces that have an operator of their own, which is alive: seen by
// its renewals within the duration of its Lease, not by its clock.
func (i Installer) others(ctx context.Context) ([]string, error) {
	first, longest, err := i.claims(ctx)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	alive := map[string]bool{}
	for silence := time.Now().Add(longest); time.Now().Before(silence) && len(alive) < len(first); {
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		now, _, err := i.claims(ctx)
		if err != nil {
			return nil, err
		}
		for namespace, version := range now {
			if seen, known := first[namespace]; known && seen != version {
				alive[namespace] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(alive)), nil
}

// claims are the versions of the Leases of namespaces that somebody holds, and the
// longest time that one of them holds without being renewed.
func (i Installer) claims(ctx context.Context) (versions map[string]string, longest time.Duration, err error) {
	var leases coordinationv1.LeaseList
	if err := i.Client.List(ctx, &leases, client.MatchingFields{"metadata.name": namespacescope.LeaseName}); err != nil {
		return nil, 0, fmt.Errorf("list Leases %s: %w", namespacescope.LeaseName, err)
	}
	versions = map[string]string{}
	for _, lease := range leases.Items {
		if s := lease.Spec; s.HolderIdentity != nil && *s.HolderIdentity != "" && s.LeaseDurationSeconds != nil {
			versions[lease.Namespace] = lease.ResourceVersion
			longest = max(longest, time.Duration(*s.LeaseDurationSeconds)*time.Second)
		}
	}
	return versions, longest, nil
}

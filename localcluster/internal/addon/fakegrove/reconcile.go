package fakegrove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type reconciler struct{ client client.Client }

const (
	// The cache was behind. It catches up in less than this.
	again = 20 * time.Millisecond
	// pause is how long an update of templates waits before it touches the first clique.
	pause = time.Second
)

// Reconcile makes a set's parts what they should be. A set that is being deleted is left to the garbage collector.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &grovev1alpha1.PodCliqueSet{}
	if err := r.client.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if err := admitted(set); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	err := r.pass(ctx, set)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if p := set.Status.RollingUpdateProgress; err == nil && p != nil && p.UpdateEndedAt == nil {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	return reconcile.Result{}, err
}

// admitted is what Grove refuses at admission, of which there is none here: nothing comes of such a set.
func admitted(set *grovev1alpha1.PodCliqueSet) error {
	for _, group := range set.Spec.Template.PodCliqueScalingGroupConfigs {
		if orOne(group.Replicas) < 1 {
			return fmt.Errorf("PodCliqueSet %s: replicas of scaling group %s must be greater than 0", set.Name, group.Name)
		}
	}
	return nil
}

func (r *reconciler) pass(ctx context.Context, set *grovev1alpha1.PodCliqueSet) error {
	w, err := observe(ctx, r.client, set)
	if err != nil {
		return err
	}
	if w.services, err = syncParts(ctx, r.client, w.wantServices(), w.services, func(live, want *corev1.Service) bool {
		same := live.Spec.PublishNotReadyAddresses == want.Spec.PublishNotReadyAddresses
		live.Spec.PublishNotReadyAddresses = want.Spec.PublishNotReadyAddresses
		return !same
	}); err != nil {
		return err
	}
	if w.groups, err = syncParts(ctx, r.client, w.wantGroups(), w.groups, func(live, want *grovev1alpha1.PodCliqueScalingGroup) bool {
		same := equality.Semantic.DeepEqual(live.Spec, want.Spec)
		live.Spec = want.Spec
		return !same
	}); err != nil {
		return err
	}
	if w.cliques, err = syncParts(ctx, r.client, w.wantCliques(), w.cliques, func(live, want *grovev1alpha1.PodClique) bool {
		same := equality.Semantic.DeepEqual(live.Spec, want.Spec)
		live.Spec = want.Spec
		return !same
	}); err != nil {
		return err
	}
	refused, err := r.act(ctx, w.next())
	if err != nil {
		return err
	}
	w.refused = refused
	return errors.Join(append(slices.Collect(maps.Values(refused)), r.report(ctx, w))...) // what was refused is tried again
}

// syncParts creates, updates and deletes until the parts of one kind are those wanted, and returns them as they are now.
func syncParts[T client.Object](
	ctx context.Context, c client.Client, want []T, have map[string]T, merge func(live, want T) (changed bool),
) (map[string]T, error) {
	now := map[string]T{}
	for _, part := range want {
		live, found := have[part.GetName()]
		if !found {
			if err := c.Create(ctx, part); err != nil {
				return nil, fmt.Errorf("create %T %s: %w", part, part.GetName(), err)
			}
			now[part.GetName()] = part
			continue
		}
		now[part.GetName()] = live
		if live.GetDeletionTimestamp() != nil {
			continue
		}
		live = live.DeepCopyObject().(T)
		now[part.GetName()] = live
		changed := merge(live, part)
		if mergeMeta(live, part) || changed {
			if err := c.Update(ctx, live); err != nil {
				return nil, fmt.Errorf("update %T %s: %w", part, part.GetName(), err)
			}
		}
	}
	for name, live := range have {
		if _, wanted := now[name]; wanted || live.GetDeletionTimestamp() != nil {
			continue
		}
		err := c.Delete(ctx, live, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete %T %s: %w", live, name, err)
		}
	}
	return now, nil
}

// mergeMeta leaves labels and annotations of others alone.
func mergeMeta(live, want client.Object) (changed bool) {
	labels, annotations := over(live.GetLabels(), want.GetLabels()), over(live.GetAnnotations(), want.GetAnnotations())
	changed = !maps.Equal(labels, live.GetLabels()) || !maps.Equal(annotations, live.GetAnnotations())
	live.SetLabels(labels)
	live.SetAnnotations(annotations)
	return changed
}

func over(below, above map[string]string) map[string]string {
	both := map[string]string{}
	maps.Copy(both, below)
	maps.Copy(both, above)
	return both
}

// act removes and makes pods. A pod that the API server does not let be made is its clique's trouble, not that of others.
func (r *reconciler) act(ctx context.Context, s step) (refused map[string]error, err error) {
	for _, pod := range s.remove {
		err := r.client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete Pod %s: %w", pod.Name, err)
		}
	}
	refused = map[string]error{}
	for _, pod := range s.create {
		err := r.client.Create(ctx, pod)
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
			refused[pod.Labels[common.LabelPodClique]] = fmt.Errorf("create Pod %s: %w", pod.Name, err)
		case err != nil:
			return nil, fmt.Errorf("create Pod %s: %w", pod.Name, err)
		}
	}
	return refused, nil
}

// report writes the statuses that changed.
func (r *reconciler) report(ctx context.Context, w world) error {
	places := w.places()
	for name, clique := range w.cliques {
		p, found := placeOf(places, name)
		if !found || clique.DeletionTimestamp != nil {
			continue
		}
		if status := w.cliqueStatus(p, clique); !equality.Semantic.DeepEqual(clique.Status, status) {
			clique = clique.DeepCopy()
			clique.Status = status
			if err := r.client.Status().Update(ctx, clique); err != nil {
				return fmt.Errorf("update status of PodClique %s: %w", name, err)
			}
		}
	}
	for name, group := range w.groups {
		if status := w.groupStatus(group); !equality.Semantic.DeepEqual(group.Status, status) {
			group = group.DeepCopy()
			group.Status = status
			if err := r.client.Status().Update(ctx, group); err != nil {
				return fmt.Errorf("update status of PodCliqueScalingGroup %s: %w", name, err)
			}
		}
	}
	if status := w.setStatus(); !equality.Semantic.DeepEqual(w.set.Status, status) {
		set := w.set.DeepCopy()
		set.Status = status
		if err := r.client.Status().Update(ctx, set); err != nil {
			return fmt.Errorf("update status of PodCliqueSet %s: %w", set.Name, err)
		}
	}
	return nil
}

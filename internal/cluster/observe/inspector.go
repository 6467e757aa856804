package observe

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// +kubebuilder:rbac:groups="",resources=pods;events,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get,roleName=dynamo-operator-manager-cluster

// Inspector reads how the pods of services are, and what they lack.
type Inspector struct {
	// pods and warnings come from held; what pods refer to is asked for, which
	// happens only for those that do not come up.
	held, direct client.Reader
	ofService    func(graph, service string) client.ListOption
	logs         *Logs
}

// NewInspector reads pods and warnings from informers that IndexPods has
// prepared. Without logs it leaves logs alone.
func NewInspector(cached, direct client.Reader, logs *Logs) *Inspector {
	return &Inspector{held: cached, direct: direct, logs: logs, ofService: func(graph, service string) client.ListOption {
		return client.MatchingFields{serves: serviceKey(graph, service)}
	}}
}

// NewVisitor is an Inspector for one look: it asks the API server for all.
func NewVisitor(direct client.Reader, logs *Logs) *Inspector {
	return &Inspector{held: direct, direct: direct, logs: logs, ofService: func(graph, service string) client.ListOption {
		labels := client.MatchingLabels{v1alpha1.LabelGraphName: graph}
		if service != "" {
			labels[v1alpha1.LabelComponent] = service
		}
		return labels
	}}
}

// Inspect reads the pods of one service, or of a whole graph if service is
// empty. Sets are the LeaderWorkerSets that make some of them.
func (i *Inspector) Inspect(ctx context.Context, namespace, graphName, service string, sets ...string) (snapshot.Evidence, error) {
	if i == nil {
		return snapshot.Evidence{}, nil // an operator that does not look at pods
	}
	e, err := i.inspect(ctx, namespace, i.ofService(graphName, service), sets)
	if err != nil {
		return e, fmt.Errorf("graph %s/%s: %w", namespace, graphName, err)
	}
	return e, nil
}

// InspectDeployment reads the pods of a Deployment that is no graph's, such as
// the operator's own.
func (i *Inspector) InspectDeployment(ctx context.Context, d *appsv1.Deployment) (snapshot.Evidence, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return snapshot.Evidence{}, fmt.Errorf("selector of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return i.inspect(ctx, d.Namespace, client.MatchingLabelsSelector{Selector: selector}, nil)
}

func (i *Inspector) inspect(ctx context.Context, namespace string, which client.ListOption, sets []string) (snapshot.Evidence, error) {
	var e snapshot.Evidence
	var list corev1.PodList
	if err := i.held.List(ctx, &list, client.InNamespace(namespace), which); err != nil {
		return e, fmt.Errorf("list pods: %w", err)
	}
	e.Pods = list.Items
	slices.SortFunc(e.Pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	err := i.fill(ctx, namespace, &e, sets)
	return e, err
}

// fill adds what the pods alone do not tell.
func (i *Inspector) fill(ctx context.Context, namespace string, e *snapshot.Evidence, sets []string) (err error) {
	for _, pod := range e.Pods {
		if ready(pod) {
			continue
		}
		complaints, err := i.warnings(ctx, namespace, "Pod", pod.Name, pod.UID)
		if err != nil {
			return err
		}
		e.Complaints = append(e.Complaints, complaints...)
		if err := i.references(ctx, pod, e); err != nil {
			return err
		}
		if err := i.claims(ctx, pod, e); err != nil {
			return err
		}
	}
	if e.Refused, err = i.refusals(ctx, namespace, e.Pods, sets); err != nil {
		return err
	}
	if i.logs != nil {
		e.LastLines = i.logs.lastLines(ctx, e.Pods)
	}
	return nil
}

func ready(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

var ofContainer = regexp.MustCompile(`^spec\.(?:initC|c)ontainers\{(.+)\}$`)

// warnings reads what was said about an object, in a stable order.
func (i *Inspector) warnings(ctx context.Context, namespace, kind, name string, uid types.UID) ([]snapshot.Complaint, error) {
	var list corev1.EventList
	if err := i.held.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{involvedKind: kind, involvedName: name}); err != nil {
		return nil, fmt.Errorf("list warnings about %s %s/%s: %w", kind, namespace, name, err)
	}
	var all []snapshot.Complaint
	for _, event := range list.Items {
		if uid != "" && event.InvolvedObject.UID != uid {
			continue // an earlier object of that name
		}
		if event.Type != "" && event.Type != corev1.EventTypeWarning {
			continue // the informers hold none
		}
		c := snapshot.Complaint{Pod: event.InvolvedObject.UID, Reason: event.Reason, Message: event.Message}
		if m := ofContainer.FindStringSubmatch(event.InvolvedObject.FieldPath); m != nil {
			c.Container = m[1]
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b snapshot.Complaint) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Message, b.Message))
	})
	return all, nil
}

// references looks for the Secrets and ConfigMaps of a pod whose containers are
// not made: a node waits for them without a word in the pod's status.
func (i *Inspector) references(ctx context.Context, pod corev1.Pod, e *snapshot.Evidence) error {
	if pod.Spec.NodeName == "" || !uncreated(pod) {
		return nil
	}
	for _, ref := range diagnosis.References(pod) {
		if slices.Contains(e.Absent, ref) {
			continue
		}
		exists, err := i.exists(ctx, pod.Namespace, ref)
		if err != nil {
			return err
		}
		if !exists {
			e.Absent = append(e.Absent, ref)
		}
	}
	return nil
}

func uncreated(pod corev1.Pod) bool {
	return !slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting == nil || s.LastTerminationState.Terminated != nil
	})
}

func (i *Inspector) exists(ctx context.Context, namespace string, ref graph.Ref) (bool, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ref.Kind))
	err := i.direct.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil // who may not look does not know
	case err != nil:
		return false, fmt.Errorf("look for %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	return true, nil
}

// claims looks at the claims of a pod that the scheduler cannot place.
func (i *Inspector) claims(ctx context.Context, pod corev1.Pod, e *snapshot.Evidence) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil || slices.ContainsFunc(e.Unbound, func(c snapshot.Claim) bool { return c.Name == v.PersistentVolumeClaim.ClaimName }) {
			continue
		}
		var claim corev1.PersistentVolumeClaim
		err := i.direct.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}, &claim)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue // the scheduler says so itself
		}
		if err != nil {
			return fmt.Errorf("look at PersistentVolumeClaim %s/%s: %w", pod.Namespace, v.PersistentVolumeClaim.ClaimName, err)
		}
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		unbound := snapshot.Claim{Name: claim.Name}
		if class := claim.Spec.StorageClassName; class != nil && *class != "" {
			unbound.Class = *class
			err := i.direct.Get(ctx, types.NamespacedName{Name: *class}, &storagev1.StorageClass{})
			if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
				return fmt.Errorf("look for StorageClass %s: %w", *class, err)
			}
			unbound.ClassAbsent = apierrors.IsNotFound(err)
		}
		e.Unbound = append(e.Unbound, unbound)
	}
	return nil
}

// refusals reads what the StatefulSets beneath LeaderWorkerSets were refused.
// Their status does not tell; a warning is all there is. It counts while the
// set lacks pods.
func (i *Inspector) refusals(ctx context.Context, namespace string, pods []corev1.Pod, sets []string) ([]snapshot.Refusal, error) {
	var all []snapshot.Refusal
	for _, set := range sets {
		if whole(set, pods) {
			continue
		}
		for _, name := range []string{set, set + "-0"} { // of the leader, of its workers
			said, err := i.warnings(ctx, namespace, "StatefulSet", name, "")
			if err != nil {
				return nil, err
			}
			for _, c := range said {
				if c.Reason == "FailedCreate" {
					all = append(all, snapshot.Refusal{By: "StatefulSet/" + name, Message: c.Message})
				}
			}
		}
	}
	return all, nil
}

// whole reports whether a LeaderWorkerSet of one group has all its pods.
func whole(set string, pods []corev1.Pod) bool {
	seen, size := 0, 0
	for _, pod := range pods {
		if pod.Labels[lwsv1.SetNameLabelKey] == set && pod.DeletionTimestamp == nil {
			seen++
			fmt.Sscan(pod.Annotations[lwsv1.SizeAnnotationKey], &size) //nolint:errcheck // without a size a set is never whole
		}
	}
	return size > 0 && seen >= size
}

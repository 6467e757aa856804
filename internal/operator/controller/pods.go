package controller

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/orchestrator"
)

// Inspector reads pods for every controller that asks.
func (d *Deps) Inspector(ctx context.Context) (*observe.Inspector, error) {
	if d.pods != nil {
		return d.pods, nil
	}
	if err := observe.IndexPods(ctx, d.GetFieldIndexer()); err != nil {
		return nil, err
	}
	var logs *observe.Logs
	if d.Config.Diagnosis.ReadLogs {
		reader, err := typedcorev1.NewForConfig(d.GetConfig())
		if err != nil {
			return nil, fmt.Errorf("set up the reader of logs: %w", err)
		}
		logs = observe.NewLogs(reader)
	}
	d.pods = observe.NewInspector(d.GetClient(), d.GetAPIReader(), logs)
	return d.pods, nil
}

// owner names what a pod is to be reported by.
type owner func(pod client.Object) []reconcile.Request

// WatchPods wakes a controller for changes of pods, and for warnings that a
// pod's own status does not hold.
func (d *Deps) WatchPods(w *Watched, of owner) error {
	toOwner := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, pod client.Object) []reconcile.Request { return of(pod) })
	if err := w.controller.Watch(source.Kind[client.Object](d.GetCache(), &corev1.Pod{}, d.batchedLonger(w.kind, toOwner), ContentChanged())); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	aboutPods := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, warning client.Object) []reconcile.Request {
		about := warning.(*corev1.Event).InvolvedObject
		key := types.NamespacedName{Namespace: warning.GetNamespace(), Name: about.Name}
		switch about.Kind {
		case "Pod":
			pod := &corev1.Pod{}
			if d.GetClient().Get(ctx, key, pod) != nil {
				return nil // not of a graph, or gone
			}
			return of(pod)
		case "StatefulSet":
			// Of a LeaderWorkerSet, which is named after its component.
			key.Name = groupSuffix.ReplaceAllString(key.Name, "")
			return []reconcile.Request{{NamespacedName: key}}
		default:
			return nil
		}
	})
	if err := w.controller.Watch(source.Kind[client.Object](d.GetCache(), &corev1.Event{}, d.batchedLonger(w.kind, aboutPods), ContentChanged())); err != nil {
		return fmt.Errorf("watch warnings: %w", err)
	}
	return nil
}

// groupSuffix is what the StatefulSets of a leader and of its workers add to the
// name of a component.
var groupSuffix = regexp.MustCompile(`-\d+(-\d+)?$`)

// ContentChanged lets through changes of what is kept of an object: a pause that grew or a
// count that rose was trimmed away.
func ContentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.DeepCopyObject().(client.Object), e.ObjectNew.DeepCopyObject().(client.Object)
		was.SetResourceVersion("")
		is.SetResourceVersion("")
		return !equality.Semantic.DeepEqual(was, is)
	}}
}

// ComponentOfPod leads from a pod to its DynamoComponentDeployment. A pod of a
// Deployment carries the component's name; one of a LeaderWorkerSet carries the
// set's, which is the component's and a number.
func ComponentOfPod(pod client.Object) []reconcile.Request {
	labels := pod.GetLabels()
	if orchestrator.OwnsPod(labels) {
		return nil
	}
	name := cmp.Or(labels[v1alpha1.LabelSelector], setNumber.ReplaceAllString(labels[lwsv1.SetNameLabelKey], ""),
		graph.ComponentName(labels[v1alpha1.LabelGraphName], labels[v1alpha1.LabelComponent]))
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// setNumber is what a LeaderWorkerSet adds to the name of its component.
var setNumber = regexp.MustCompile(`-\d+$`)

// GraphOfPod leads from a pod to the graph that owns it without a component in
// between. Other graphs hear of their pods from their components.
func GraphOfPod(pod client.Object) []reconcile.Request {
	if !orchestrator.OwnsPod(pod.GetLabels()) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: pod.GetNamespace(), Name: pod.GetLabels()[v1alpha1.LabelGraphName],
	}}}
}

package plan

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// sight is what runs of a graph.
type sight struct {
	// graph is nil if there is none.
	graph *v1alpha1.DynamoGraphDeployment
	pods  []corev1.Pod
	// revisions tell what generations were told that the graph does not ask for.
	revisions []*appsv1.ControllerRevision
}

// source is where what runs is read.
type source interface {
	namespace() string
	live(ctx context.Context, namespace, name string, rules validation.Scope) (sight, error)
}

// cluster asks a cluster, with the rights of whoever asks.
type cluster struct{ *connect.Cluster }

func (c cluster) namespace() string { return c.Namespace }

func (c cluster) live(ctx context.Context, namespace, name string, _ validation.Scope) (sight, error) {
	var dgd v1alpha1.DynamoGraphDeployment
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &dgd); err != nil {
		return sight{}, client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelGraphName: name})
	if err != nil && !apierrors.IsForbidden(err) { // without them the time is unknown, and nothing else
		return sight{}, err
	}
	var revisions appsv1.ControllerRevisionList
	err = c.List(ctx, &revisions, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelGraphName: graph.LabelValue(name)})
	if apierrors.IsForbidden(err) {
		err = nil // a note says what is not known without them
	}
	s := sight{graph: &dgd, pods: pods.Items}
	for i := range revisions.Items {
		if metav1.IsControlledBy(&revisions.Items[i], &dgd) {
			s.revisions = append(s.revisions, &revisions.Items[i])
		}
	}
	return s, err
}

// files reads what was printed before.
type files struct {
	documents []input.Document
	where     string
}

func (f files) namespace() string { return f.where }

func (f files) live(_ context.Context, namespace, name string, rules validation.Scope) (sight, error) {
	var s sight
	for _, d := range f.documents {
		if d.GetNamespace() == "" {
			d.SetNamespace(f.where)
		}
		switch {
		case d.GetNamespace() != namespace:
		case validate.Ours(d) && d.GetKind() == v1alpha1.KindDynamoGraphDeployment && d.GetName() == name:
			// What runs was admitted, by whatever rules; what matters is that it can be read.
			verdict, err := validate.Judge(d, rules)
			if err != nil {
				return s, fmt.Errorf("%s: %w", d, err)
			}
			dgd, ok := verdict.Object.(*v1alpha1.DynamoGraphDeployment)
			if !ok {
				return s, fmt.Errorf("%s: %w", d, verdict.Problems.ToAggregate())
			}
			s.graph = dgd
		case d.GetKind() == "Pod" && d.GetLabels()[v1alpha1.LabelGraphName] == name:
			var pod corev1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &pod); err != nil {
				return s, fmt.Errorf("%s: %w", d, err)
			}
			s.pods = append(s.pods, pod)
		case d.GetKind() == "ControllerRevision" && d.GetLabels()[v1alpha1.LabelGraphName] == graph.LabelValue(name):
			var of appsv1.ControllerRevision
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, &of); err != nil {
				return s, fmt.Errorf("%s: %w", d, err)
			}
			s.revisions = append(s.revisions, &of)
		}
	}
	return s, nil
}

// starts is how long pods of a service took until they were ready, in the median, and how
// many tell: those that run, or else those that the graph's status remembers.
func (s sight) starts(service string) (median time.Duration, pods int) {
	var of []corev1.Pod
	for _, pod := range s.pods {
		if pod.Labels[v1alpha1.LabelComponent] == service {
			of = append(of, pod)
		}
	}
	seen := workload.Startup(of)
	if seen == nil && s.graph != nil {
		seen = s.graph.Status.Services[service].Startup
	}
	if seen == nil {
		return 0, 0
	}
	return time.Duration(seen.P50Seconds) * time.Second, int(seen.Samples)
}

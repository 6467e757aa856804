package why

import (
	"context"
	"fmt"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/deployment"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// finding is a graph and what was seen of each of its services.
type finding struct {
	graph *v1alpha1.DynamoGraphDeployment
	seen  map[string]snapshot.Evidence
}

// Look explains a graph from what a reader sees: an API server, or what was watched
// of one. Without logs it leaves logs alone.
func Look(ctx context.Context, reader client.Reader, logs *observe.Logs, key types.NamespacedName) (Explanation, error) {
	found, err := look(ctx, reader, logs, key)
	if err != nil {
		return Explanation{}, err
	}
	return explain(found), nil
}

func look(ctx context.Context, reader client.Reader, logs *observe.Logs, key types.NamespacedName) (finding, error) {
	f := finding{graph: &v1alpha1.DynamoGraphDeployment{}, seen: map[string]snapshot.Evidence{}}
	if err := reader.Get(ctx, key, f.graph); err != nil {
		return f, err
	}
	visitor := observe.NewVisitor(reader, logs)
	for service := range f.graph.Spec.SortedServices() {
		e, err := visit(ctx, reader, visitor, f.graph, service)
		if err != nil {
			return f, err
		}
		f.seen[service] = e
	}
	return f, nil
}

// visit reads what there is to know of one service: its pods, and what the
// workloads were refused that make them.
func visit(ctx context.Context, reader client.Reader, pods *observe.Inspector, dgd *v1alpha1.DynamoGraphDeployment, service string) (snapshot.Evidence, error) {
	of := []client.ListOption{client.InNamespace(dgd.Namespace), client.MatchingLabels{
		v1alpha1.LabelGraphName: dgd.Name, v1alpha1.LabelComponent: service,
	}}
	var deployments appsv1.DeploymentList
	var sets lwsv1.LeaderWorkerSetList
	var cliques grovev1alpha1.PodCliqueList
	for _, list := range []client.ObjectList{&deployments, &sets, &cliques} {
		if err := reader.List(ctx, list, of...); err != nil && !meta.IsNoMatchError(err) {
			return snapshot.Evidence{}, fmt.Errorf("list workloads of service %s: %w", service, err)
		}
	}
	var names []string
	for _, set := range sets.Items {
		names = append(names, set.Name)
	}
	e, err := pods.Inspect(ctx, dgd.Namespace, dgd.Name, service, names...)
	if err != nil {
		return e, err
	}
	for _, d := range deployments.Items {
		e.Refused = append(e.Refused, deployment.Refused(&d)...)
	}
	var beneath []graph.Object
	for _, c := range cliques.Items {
		beneath = append(beneath, &c)
	}
	e.Refused = append(e.Refused, grove.Refused(service, beneath)...)
	return e, nil
}

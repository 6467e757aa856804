package why

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/deployment"
)

// Diagnosis is why a Deployment is not ready, and what to do about it.
type Diagnosis struct{ Cause, Todo string }

// Operator diagnoses the operator's own Deployment by the rules for graphs. None
// is found if its pods only take their time.
func Operator(ctx context.Context, cluster *connect.Cluster, d *appsv1.Deployment) (Diagnosis, bool, error) {
	seen, err := observe.NewVisitor(cluster, observe.NewLogs(cluster.Pods)).InspectDeployment(ctx, d)
	if err != nil {
		return Diagnosis{}, false, err
	}
	seen.Refused = append(seen.Refused, deployment.Refused(d)...)
	first, found := diagnosis.First(seen)
	if !found || !first.Reason.Fault() {
		return Diagnosis{}, false, nil
	}
	return diagnose(d, first), true, nil
}

// operatorAdvice is for reasons whose advice speaks of a graph's services.
var operatorAdvice = map[diagnosis.Reason]string{
	diagnosis.ImageNotFound:   "push the images (make push REGISTRY=...), and name them: kubectl dynamo install --registry, or the chart's values",
	diagnosis.ImagePullDenied: "give the operator's ServiceAccount a pull secret for this registry; the chart takes dynamo-operator.imagePullSecrets",
	diagnosis.OutOfMemory:     "raise the memory limit of the operator's Deployment",
}

func diagnose(d *appsv1.Deployment, c diagnosis.Cause) Diagnosis {
	where := "Deployment " + d.Namespace + "/" + d.Name
	if c.Pod != "" {
		where = "pod " + d.Namespace + "/" + c.Pod
	}
	todo, own := operatorAdvice[c.Reason]
	if !own {
		todo = advice(d.Namespace, c)
	}
	return Diagnosis{Cause: fmt.Sprintf("%s: %s: %s", where, c.Reason, c.Message), Todo: todo}
}

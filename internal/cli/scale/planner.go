package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// plannerPorts are where planners answer, the ones tried first first.
var plannerPorts = []int{pod.PortPlanner, pod.PortSystem}

// ErrNoPlanner says that no pod of a graph is a planner that could be asked.
var ErrNoPlanner = errors.New("no pod of a planner is ready")

// AskPlanner asks the planners among pods of a graph one by one for their decisions, until
// one answers. It goes through the API server, with the rights of who asks.
func AskPlanner(ctx context.Context, through rest.Interface, pods []corev1.Pod) (answer []byte, from string, err error) {
	err = ErrNoPlanner
	for i := range pods {
		p := &pods[i]
		if graph.RoleOf(p.Labels[v1alpha1.LabelComponentType]) != graph.RolePlanner || tree.PodState(*p) != "Ready" {
			continue
		}
		for _, port := range plannerPorts {
			request := through.Get().Namespace(p.Namespace).Resource("pods").Name(p.Name + ":" + strconv.Itoa(port)).SubResource("proxy").Suffix("decisions")
			if answer, err = request.DoRaw(ctx); err == nil {
				return answer, p.Name, nil
			}
			if apierrors.IsForbidden(err) {
				return nil, "", err
			}
		}
		err = fmt.Errorf("%s tells no decisions: %w", p.Name, err)
	}
	return nil, "", err
}

// records are the decisions of a planner of ours.
func records(answer []byte) ([]journal.Record, error) {
	var all []journal.Record
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, errors.New("what it answers is not in the form of dynamo-planner")
	}
	return all, nil
}

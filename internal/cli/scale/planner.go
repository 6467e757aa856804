package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// plannerPorts are where planners answer, the ones tried first first.
var plannerPorts = []int{pod.PortPlanner, pod.PortSystem}

// answerLimit is more than a planner says: a day of bins is one MiB.
const answerLimit = 4 << 20

// ErrNoPlanner says that no pod of a graph is a planner that could be asked.
var ErrNoPlanner = errors.New("no pod of a planner is ready")

// AskPlanner asks the planners among pods of a graph one by one for their decisions, until
// one answers. It goes through the API server, with the rights of who asks.
func AskPlanner(ctx context.Context, through rest.Interface, pods []corev1.Pod) (answer []byte, from string, err error) {
	return askPlanner(ctx, through, pods, "decisions")
}

func askPlanner(ctx context.Context, through rest.Interface, pods []corev1.Pod, what string) (answer []byte, from string, err error) {
	err = ErrNoPlanner
	for i := range pods {
		p := &pods[i]
		if graph.RoleOf(p.Labels[v1alpha1.LabelComponentType]) != graph.RolePlanner || tree.PodState(*p) != "Ready" {
			continue
		}
		for _, port := range plannerPorts {
			request := through.Get().Namespace(p.Namespace).Resource("pods").Name(p.Name + ":" + strconv.Itoa(port)).SubResource("proxy").Suffix(what)
			if answer, err = read(ctx, request); err == nil {
				return answer, p.Name, nil
			}
			if apierrors.IsForbidden(err) {
				return nil, "", err
			}
		}
		err = fmt.Errorf("%s tells no %s: %w", p.Name, what, err)
	}
	return nil, "", err
}

// read is an answer, of no more than answerLimit: whoever asks holds it in memory.
func read(ctx context.Context, request *rest.Request) ([]byte, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	answer, err := io.ReadAll(io.LimitReader(body, answerLimit+1))
	if err == nil && len(answer) > answerLimit {
		err = fmt.Errorf("the answer is longer than %d bytes", answerLimit)
	}
	return answer, err
}

// observed is what came to a graph of a cluster, as its planner has seen it.
func observed(ctx context.Context, to *connect.Flags, name string) (*trace.Bins, error) {
	cluster, err := to.Cluster()
	if err != nil {
		return nil, err
	}
	core, err := typedcorev1.NewForConfig(cluster.Config)
	if err != nil {
		return nil, fmt.Errorf("reach the cluster: %w", err)
	}
	return source{cluster, core.RESTClient(), cluster.Namespace}.bins(ctx, name)
}

func (s source) bins(ctx context.Context, name string) (*trace.Bins, error) {
	var pods corev1.PodList
	if err := s.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelGraphName: name}); err != nil {
		return nil, fmt.Errorf("list pods of graph %s/%s: %w", s.namespace, name, err)
	}
	answer, from, err := askPlanner(ctx, s.pods, pods.Items, "bins")
	if err != nil {
		return nil, fmt.Errorf("what came to graph %s/%s: %w", s.namespace, name, err)
	}
	came := &trace.Bins{}
	if err := json.Unmarshal(answer, came); err != nil {
		return nil, fmt.Errorf("what came to graph %s/%s: %s answers in another form than dynamo-planner's", s.namespace, name, from)
	}
	return came, nil
}

// records are the decisions of a planner of ours.
func records(answer []byte) ([]journal.Record, error) {
	var all []journal.Record
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, errors.New("what it answers is not in the form of dynamo-planner")
	}
	return all, nil
}

package observe

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Requests reads what is around requests.
type Requests struct {
	Facts
	// Kept reads the ConfigMaps of requests from an informer of their own.
	Kept client.Reader
	// ClusterWide is an operator that may look at nodes.
	ClusterWide bool
	// Children reads Jobs, and graphs that a profiler tries out.
	Children *Observer
	// Reviews asks what the accounts may do that allow requests from elsewhere.
	Reviews Reviewer
	// Policy names the admission policy that judges who asks for graphs elsewhere.
	Policy string
}

// Around reads what is around a request. What is neither watched nor needed in
// its state is not asked for.
func (q Requests) Around(ctx context.Context, r *v1alpha1.DynamoGraphDeploymentRequest) (requestplan.Sight, error) {
	var s requestplan.Sight
	owned, err := q.Children.Children(ctx, r, nil)
	if err != nil {
		return s, err
	}
	if s.Record, err = requestplan.Recorded(r); err != nil {
		return s, err
	}
	current := requestplan.Attempt(r)
	if s.Record != nil {
		current = s.Record.Attempt
	}
	q.jobs(&s, r, owned, current)
	if err := q.output(ctx, &s, r, current); err != nil {
		return s, err
	}
	switch {
	case requestplan.HasGraph(r):
		err = q.graph(ctx, &s, r)
	case s.Record == nil:
		err = q.prerequisites(ctx, &s, r)
	default:
		err = q.progress(ctx, &s, r)
	}
	if err != nil || !requestplan.Asks(r, s) {
		return s, err
	}
	s.Consent, err = q.consent(ctx, r.Namespace, requestplan.Target(r, s))
	return s, err
}

// jobs sorts what the request owns by the attempt it was made for. Graphs that
// were tried out are of no use once nobody tries them.
func (q Requests) jobs(s *requestplan.Sight, r *v1alpha1.DynamoGraphDeploymentRequest, owned snapshot.Snapshot, current string) {
	for _, object := range owned.Owned {
		job, ok := object.(*batchv1.Job)
		if !ok {
			continue
		}
		if job.Name == graph.ProfilingJob(r.Name) && (attempt(job) == current || attempt(job) == "") && job.DeletionTimestamp == nil {
			s.Job = job
		} else {
			s.Leftover = append(s.Leftover, job)
		}
	}
	if s.Job != nil && !requestplan.Finished(s.Job) {
		return
	}
	for _, object := range owned.Owned {
		if tried, ok := object.(*v1alpha1.DynamoGraphDeployment); ok {
			s.Leftover = append(s.Leftover, tried)
		}
	}
}

// output reads what the profiler left. At the end the server is asked: the
// informer of the Job may be ahead of that of the ConfigMap.
func (q Requests) output(ctx context.Context, s *requestplan.Sight, r *v1alpha1.DynamoGraphDeploymentRequest, current string) error {
	output, err := q.kept(ctx, r, graph.ProfilingOutput(r.Name))
	if err != nil {
		return err
	}
	if output != nil && attempt(output) != current && attempt(output) != "" {
		s.Leftover = append(s.Leftover, output)
		return nil
	}
	if s.Record != nil && !requestplan.Finished(s.Job) {
		input, err := q.kept(ctx, r, graph.ProfilingInput(r.Name))
		if err != nil {
			return err
		}
		s.Drifted = output == nil || input == nil || attempt(input) != current || input.Data[requestplan.KeyConfig] != s.Record.Config
	}
	if requestplan.Finished(s.Job) && !requestplan.HasGraph(r) {
		output, err = q.configMap(ctx, q.Direct, r.Namespace, graph.ProfilingOutput(r.Name))
	}
	if output != nil {
		s.Output = map[string]string{}
		for _, key := range []string{profileoutput.KeyProgress, profileoutput.KeyResult, profileoutput.KeyGraph, profileoutput.KeyMockerGraph, profileoutput.KeyFinalGraph, profileoutput.KeyPhase} {
			if text, found := output.Data[key]; found {
				s.Output[key] = text
			}
		}
	}
	return err
}

// prerequisites looks for what a request refers to.
func (q Requests) prerequisites(ctx context.Context, s *requestplan.Sight, r *v1alpha1.DynamoGraphDeploymentRequest) error {
	profiling := r.Spec.ProfilingConfig
	if ref := profiling.ConfigMapRef; ref != nil && ref.Name != "" { // without a name it is refused
		base, err := q.configMap(ctx, q.Direct, r.Namespace, ref.Name)
		if err != nil {
			return err
		}
		if base == nil {
			s.Absent = append(s.Absent, "ConfigMap "+ref.Name)
		} else if _, found := base.Data[ref.Key]; !found && ref.Key != "" {
			s.Absent = append(s.Absent, fmt.Sprintf("key %s of ConfigMap %s", ref.Key, ref.Name))
		}
	}
	for _, claim := range []string{profiling.OutputPVC, requestplan.CacheAsked(r).Claim} {
		if claim == "" {
			continue
		}
		exists, err := q.exists(ctx, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), r.Namespace, claim)
		if err != nil {
			return err
		}
		if !exists {
			s.Absent = append(s.Absent, "PersistentVolumeClaim "+claim)
		}
	}
	if !q.ClusterWide || !requestplan.Looks(r) {
		return nil
	}
	var err error
	s.Nodes, err = q.nodes(ctx)
	return err
}

// graph reads the graph that was made, or what has its name before it is. That
// there is none is believed only of the server: the informer may be behind our own
// write.
func (q Requests) graph(ctx context.Context, s *requestplan.Sight, r *v1alpha1.DynamoGraphDeploymentRequest) error {
	spec, automatic := r.Spec, r.Spec.AutoApply
	if s.Record != nil {
		spec, automatic = s.Record.Spec, automatic || s.Record.Spec.AutoApply
	}
	if made := r.Status.Deployment; !automatic && (made == nil || !made.Created) {
		return nil // nobody asks for one
	}
	key := requestplan.GraphKey(r, spec)
	for _, reader := range []client.Reader{q.Cached, q.Direct} {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		err := reader.Get(ctx, key, dgd)
		if err == nil {
			s.Graph = dgd
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for graph %s: %w", key, err)
		}
	}
	return nil
}

// progress reads more of a Job that does not run as it should, and what its
// result refers to.
func (q Requests) progress(ctx context.Context, s *requestplan.Sight, r *v1alpha1.DynamoGraphDeploymentRequest) error {
	if s.Job == nil {
		return nil
	}
	if ready := s.Job.Status.Ready; s.Job.Status.Failed > 0 || ready == nil || *ready == 0 {
		var pods corev1.PodList
		err := q.Direct.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{batchv1.JobNameLabel: s.Job.Name})
		if err != nil {
			return fmt.Errorf("list pods of Job %s: %w", s.Job.Name, err)
		}
		s.Pods = pods.Items
	}
	found, err := profileoutput.ParseResult(s.Output[profileoutput.KeyResult])
	if err != nil || found.ProfileData == "" || requestplan.GraphKey(r, s.Record.Spec).Namespace == r.Namespace {
		return nil //nolint:nilerr // there is no result yet, or its reader will say what is wrong with it
	}
	s.ProfileData, err = q.configMap(ctx, q.Direct, r.Namespace, found.ProfileData)
	return err
}

// nodes reads what nodes tell about their GPUs.
func (q Requests) nodes(ctx context.Context) ([]requestplan.Node, error) {
	var list corev1.NodeList
	if err := q.Direct.List(ctx, &list, client.HasLabels{labelGPUProduct}); err != nil {
		return nil, fmt.Errorf("list nodes with GPUs: %w", err)
	}
	var nodes []requestplan.Node
	for _, n := range list.Items {
		// A label that is no number counts as none: it was not written by GPU
		// feature discovery.
		count, err := strconv.Atoi(n.Labels["nvidia.com/gpu.count"])
		if err != nil {
			quantity := n.Status.Allocatable["nvidia.com/gpu"]
			count = int(quantity.Value())
		}
		memory, err := strconv.Atoi(n.Labels["nvidia.com/gpu.memory"])
		if err != nil {
			memory = 0
		}
		nodes = append(nodes, requestplan.Node{Product: n.Labels[labelGPUProduct], MemoryMiB: memory, GPUs: count, RDMA: offersRDMA(&n)})
	}
	return nodes, nil
}

// offersRDMA reports whether a device plugin offers RDMA on a node, or node feature
// discovery says that it is there.
func offersRDMA(n *corev1.Node) bool {
	for name := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), "rdma/") {
			return true
		}
	}
	return n.Labels["feature.node.kubernetes.io/rdma.available"] == "true"
}

const labelGPUProduct = "nvidia.com/gpu.product"

// kept reads a ConfigMap that the request controls. Labels do not make it the
// request's: anybody can write those.
func (q Requests) kept(ctx context.Context, r *v1alpha1.DynamoGraphDeploymentRequest, name string) (*corev1.ConfigMap, error) {
	found, err := q.configMap(ctx, q.Kept, r.Namespace, name)
	if found != nil && !metav1.IsControlledBy(found, r) {
		found = nil
	}
	return found, err
}

func (q Requests) configMap(ctx context.Context, from client.Reader, namespace, name string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return found, nil
}

func attempt(object graph.Object) string {
	return object.GetAnnotations()[v1alpha1.AnnotationProfilingAttempt]
}

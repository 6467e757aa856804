// Package online measures candidates: it deploys each as a graph of its own,
// waits until it serves, sends it load and takes it down again, whatever
// happens. What a measurement means is decided elsewhere.
//
// A killed profiler cannot clean up. Its graphs are owned by the request, whose
// controller removes them once nobody tries them any more, and by the next
// attempt, which begins by sweeping.
package online

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/load"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// LabelTrial marks the graphs of a profiler with the name of its request.
const LabelTrial = "dgdr.nvidia.com/trial"

// Runner measures candidates in one namespace.
type Runner struct {
	Graphs    dynamic.ResourceInterface
	Namespace string
	// Request names the request in labels; Owner owns the graphs, if there is one.
	Request string
	Owner   []metav1.OwnerReference
	HTTP    *http.Client
	// Service names the frontend's Service, unless it is empty.
	Service, Model string
	// Timeout bounds the time until a graph serves.
	Timeout time.Duration
	// Poll is the time between two looks at a graph.
	Poll  time.Duration
	Goal  config.SLA
	Sweep config.Sweep
}

// cleanupTime bounds the clean-up after a run was interrupted.
const cleanupTime = 20 * time.Second

// TrialName names the graph of a candidate: short, since Services are named
// after it, and the same for each attempt.
func TrialName(request, candidate string) string {
	sum := sha256.Sum256([]byte(request + "/" + candidate))
	const room = 24
	name := strings.ToLower(strings.ReplaceAll(request, ".", "-"))
	return strings.TrimRight(name[:min(room, len(name))], "-") + "-try-" + hex.EncodeToString(sum[:3])
}

// RemoveLeftovers deletes the graphs of an attempt that was killed.
func (r *Runner) RemoveLeftovers(ctx context.Context) error {
	list, err := r.Graphs.List(ctx, metav1.ListOptions{LabelSelector: LabelTrial + "=" + label(r.Request)})
	if err != nil {
		return fmt.Errorf("list graphs of an earlier attempt: %w", err)
	}
	for i := range list.Items {
		if err := r.remove(ctx, list.Items[i].GetName()); err != nil {
			return err
		}
	}
	return nil
}

// Measure deploys a graph, loads it and removes it.
func (r *Runner) Measure(ctx context.Context, trial *v1alpha1.DynamoGraphDeployment, c search.Candidate, p search.Problem) (m search.Measurement, err error) {
	defer func() {
		// The context may be over; the graph must go all the same.
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		err = errors.Join(err, r.remove(after, trial.Name))
	}()
	if err := r.create(ctx, trial); err != nil {
		return m, err
	}
	start, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	client := &load.Client{Client: openai.Client{HTTP: r.HTTP, URL: r.url(trial)}, Model: r.Model}
	if err := r.await(start, trial.Name, client); err != nil {
		return m, err
	}
	return r.load(ctx, client, c, p)
}

func label(request string) string { return request[:min(63, len(request))] }

func (r *Runner) create(ctx context.Context, trial *v1alpha1.DynamoGraphDeployment) error {
	trial = trial.DeepCopy()
	trial.Namespace, trial.OwnerReferences = r.Namespace, r.Owner
	if trial.Labels == nil {
		trial.Labels = map[string]string{}
	}
	trial.Labels[LabelTrial] = label(r.Request)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(trial)
	if err != nil {
		return fmt.Errorf("create graph %s: %w", trial.Name, err)
	}
	delete(fields, "status")
	if _, err := r.Graphs.Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create graph %s: %w", trial.Name, err)
	}
	return nil
}

// remove deletes a graph and waits until its GPUs are about to be free: until
// the graph is gone, or the context is over.
func (r *Runner) remove(ctx context.Context, name string) error {
	foreground := metav1.DeletePropagationForeground
	err := r.Graphs.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err == nil {
		err = wait.PollUntilContextCancel(ctx, r.Poll, true, func(ctx context.Context) (bool, error) {
			_, err := r.Graphs.Get(ctx, name, metav1.GetOptions{})
			return false, err
		})
		if ctx.Err() != nil {
			return nil // it is on its way out
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete graph %s: %w", name, err)
}

// await waits until a graph is ready and its frontend knows the model.
func (r *Runner) await(ctx context.Context, name string, client *load.Client) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, r.Poll, true, func(ctx context.Context) (bool, error) {
		last = r.serves(ctx, name, client)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for graph %s: %w (%w)", name, last, err)
	}
	return nil
}

func (r *Runner) serves(ctx context.Context, name string, client *load.Client) error {
	object, err := r.Graphs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var graph v1alpha1.DynamoGraphDeployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &graph); err != nil {
		return err
	}
	if graph.Status.State != v1alpha1.GraphStateSuccessful || graph.Status.ObservedGeneration < graph.Generation {
		for _, c := range graph.Status.Conditions {
			if c.Type == v1alpha1.ConditionReady {
				return fmt.Errorf("it is not ready: %s", c.Message)
			}
		}
		return errors.New("it is not ready")
	}
	// A frontend is ready before it has found a worker.
	_, err = client.Ask(ctx, "ready?", 1)
	return err
}

// load measures what the goal is about.
func (r *Runner) load(ctx context.Context, client *load.Client, c search.Candidate, p search.Problem) (search.Measurement, error) {
	concurrency := min(c.Decode.Concurrency, r.Sweep.Concurrency)
	m := search.Measurement{Concurrency: concurrency}
	shape := load.Shape{ISL: r.Goal.ISL, OSL: r.Goal.OSL, Concurrency: concurrency, Warmups: 1, Seed: 1}
	shape.Requests = min(max(r.Sweep.Requests, concurrency), 4*concurrency)
	if c.Prefill == nil {
		s, err := client.Run(ctx, shape)
		if err != nil {
			return m, err
		}
		m.TTFT, m.ITL, m.Done = band(s.TTFT), band(s.ITL), s.Requests
	} else {
		// The first token of a request that finds the prefill engine idle, then
		// the others with every prompt cached: prompts that wait for each other
		// would leave the decode engine half empty.
		first, err := client.Run(ctx, load.Shape{ISL: r.Goal.ISL, OSL: 2, Concurrency: 1, Requests: r.Sweep.Requests, Warmups: 1, Seed: 2})
		if err != nil {
			return m, err
		}
		var s load.Summary
		for range 2 {
			if s, err = client.Run(ctx, shape); err != nil {
				return m, err
			}
		}
		m.TTFT, m.ITL, m.Done = band(first.TTFT), band(s.ITL), first.Requests+s.Requests
	}
	m.ModelTTFT, m.ModelITL, _ = p.Expect(c, concurrency)
	return m, nil
}

// band is the middle of what was measured, and where nearly all of it lies.
func band(d load.Distribution) search.Band {
	return search.Band{Value: d.P50, Low: d.Min, High: d.P99}
}

// url is the frontend's address.
func (r *Runner) url(trial *v1alpha1.DynamoGraphDeployment) string {
	service := r.Service
	if service == "" {
		service = trial.Name + "-frontend"
		for name, s := range trial.Spec.SortedServices() {
			if s.ComponentType == v1alpha1.ComponentTypeFrontend {
				service = trial.Name + "-" + strings.ToLower(name)
			}
		}
	}
	return fmt.Sprintf("http://%s.%s.svc:8000", service, r.Namespace)
}

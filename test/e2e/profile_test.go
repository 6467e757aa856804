package e2e

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/online"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// A profiler that measures deploys graphs, loads them and takes them down; what
// it chooses is known, not estimated.
func TestADisaggregatedGraphIsMeasuredAndTakenDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask(goal{"goal", "model: Qwen/Qwen3-0.6B\nbackend: vllm", `{
		sla: {isl: 200, osl: 20, ttft: 2000, itl: 100},
		sweep: {modes: [disaggregated], maxMeasured: 1, requests: 4, maxConcurrency: 2},
		hardware: {gpuType: NVIDIA-H200, maxNumGpusPerEngine: 2}}`})
	r := w.reach("goal", v1alpha1.RequestStateReady)
	var kept corev1.ConfigMap
	if err := w.cluster.Client.Get(w.ctx, w.key(graph.ProfilingOutput(r.Name)), &kept); err != nil {
		t.Fatal(err)
	}
	end, err := profileoutput.ParseResult(kept.Data[profileoutput.KeyResult])
	if err != nil || !end.Measured || end.TTFTMs <= 0 || end.ITLMs <= 0 {
		t.Errorf("%+v, %v", end, err)
	}
	summary.Line(t, "online profile of Qwen3-0.6B: %s; ttft %.1f ms, itl %.2f ms", end.Chosen, end.TTFTMs, end.ITLMs)
	w.eventually("the graph that was tried to be gone", func(ctx context.Context) error {
		var graphs v1alpha1.DynamoGraphDeploymentList
		if err := w.cluster.Client.List(ctx, &graphs, client.InNamespace(w.namespace), client.HasLabels{online.LabelTrial}); err != nil {
			return err
		}
		if len(graphs.Items) > 0 {
			return errors.New("it is there")
		}
		return nil
	})
}

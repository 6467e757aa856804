package deviceclaim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func exactly(name, class string, count int64) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}
}

func firstOf(name string, alternatives ...resourcev1.DeviceSubRequest) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, FirstAvailable: alternatives}
}

func TestGPUs(t *testing.T) {
	all := resourcev1.DeviceRequest{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeAll}}
	for rule, c := range map[string]struct {
		requests []resourcev1.DeviceRequest
		only     string
		want     int
		refused  string
	}{
		"a request counts what it asks for":           {requests: []resourcev1.DeviceRequest{exactly("gpus", "gpu.nvidia.com", 4)}, want: 4},
		"without mode and count it is one":            {requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.intel.com"}}}, want: 1},
		"several are added up":                        {requests: []resourcev1.DeviceRequest{exactly("a", "gpu.nvidia.com", 2), exactly("b", "gpu.nvidia.com", 1)}, want: 3},
		"a container that uses one has that alone":    {requests: []resourcev1.DeviceRequest{exactly("a", "gpu.nvidia.com", 2), exactly("b", "gpu.nvidia.com", 1)}, only: "b", want: 1},
		"channels between nodes are no GPUs":          {requests: []resourcev1.DeviceRequest{exactly("channel", "compute-domain-default-channel.nvidia.com", 1)}},
		"a class with gpu in a word is not of GPUs":   {requests: []resourcev1.DeviceRequest{exactly("a", "gpu-fabric.example.com", 1)}},
		"all of a node is no number":                  {requests: []resourcev1.DeviceRequest{all}, refused: "request gpus has allocationMode All"},
		"all of something else does not matter":       {requests: []resourcev1.DeviceRequest{{Name: "nics", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "rdma.example.com", AllocationMode: resourcev1.DeviceAllocationModeAll}}}},
		"alternatives of one number have that number": {requests: []resourcev1.DeviceRequest{firstOf("g", resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 8}, resourcev1.DeviceSubRequest{DeviceClassName: "gpu.amd.com", Count: 8})}, want: 8},
		"alternatives of two numbers have none":       {requests: []resourcev1.DeviceRequest{firstOf("g", resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 4}, resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 8})}, refused: "request g has alternatives of 4 and 8"},
	} {
		t.Run(rule, func(t *testing.T) {
			got, err := GPUs(c.requests, c.only)
			if (err == nil) != (c.refused == "") || err != nil && err.Error() != c.refused {
				t.Fatalf("error %v, want %q", err, c.refused)
			}
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestCount(t *testing.T) {
	two := graph.Ref{Kind: KindTemplate, Name: "two"}
	found := Requests{two: {exactly("gpus", "gpu.nvidia.com", 2)}}
	component := func(nodes int32, e graph.Engine, c graph.Contract, gpus int, claims ...graph.DeviceClaim) graph.Component {
		one := graph.Component{Name: "w", Nodes: nodes, Engine: e}
		one.Contract, one.Resources.GPUs, one.Devices = c, gpus, claims
		return one
	}
	byTemplate, byNone, byClaim := graph.DeviceClaim{Name: "g", Template: "two"}, graph.DeviceClaim{Name: "g", Template: "none"}, graph.DeviceClaim{Name: "g", Claim: "shared"}
	for rule, c := range map[string]struct {
		is     graph.Component
		want   int
		refs   []graph.Ref
		reason string
		after  time.Duration
		absent string
	}{
		"a template gives what it asks for":           {is: component(2, graph.EngineVLLM, graph.ContractV1, 0, byTemplate), want: 2, refs: []graph.Ref{two}},
		"a limit wins, and nothing is read":           {is: component(2, graph.EngineVLLM, graph.ContractV1, 8, byNone), want: 8},
		"runtimes before 1.0 are started as they are": {is: component(2, graph.EngineVLLM, graph.ContractSeed, 0, byTemplate)},
		"what does not exist is waited for": {
			is: component(2, graph.EngineTRTLLM, graph.ContractV1, 0, byNone), refs: []graph.Ref{{Kind: KindTemplate, Name: "none"}},
			reason: v1alpha1.ReasonDeviceClaimNotFound, absent: "ResourceClaimTemplate none does not exist",
		},
		"a claim is looked for again": {
			is: component(2, graph.EngineVLLM, graph.ContractV1, 0, byClaim), refs: []graph.Ref{{Kind: KindClaim, Name: "shared"}},
			reason: v1alpha1.ReasonDeviceClaimNotFound, after: Again, absent: "ResourceClaim shared does not exist",
		},
		"an engine that needs no number is made": {
			is: component(2, graph.EngineSGLang, graph.ContractV1, 0, byNone), refs: []graph.Ref{{Kind: KindTemplate, Name: "none"}}, absent: "ResourceClaimTemplate none does not exist",
		},
		"an engine on one node is made": {
			is: component(1, graph.EngineVLLM, graph.ContractV1, 0, byNone), refs: []graph.Ref{{Kind: KindTemplate, Name: "none"}}, absent: "ResourceClaimTemplate none does not exist",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			g := &graph.Graph{Components: []graph.Component{c.is}}
			if diff := cmp.Diff(c.refs, Refs(g)); diff != "" {
				t.Errorf("refs (-want +got):\n%s", diff)
			}
			counted, err := Count(g, found)
			f, known := fault.From(err)
			if known != (c.reason != "") || known && (f.Reason != c.reason || f.Class != fault.Waiting || f.After != c.after) {
				t.Errorf("fault %+v, want %s", f, c.reason)
			}
			if got := counted.Components[0].Resources.GPUs; got != c.want {
				t.Errorf("%d GPUs, want %d", got, c.want)
			}
			if g.Components[0].Resources.GPUs != c.is.Resources.GPUs {
				t.Error("the graph itself has changed")
			}
			absent := Absent(g, found)
			if (absent == nil) != (c.absent == "") || absent != nil && !strings.HasPrefix(absent.Error(), c.absent) {
				t.Errorf("absent %v, want %q", absent, c.absent)
			}
		})
	}
}

func TestWhatCannotBeCountedIsSaid(t *testing.T) {
	all := Requests{{Kind: KindTemplate, Name: "all"}: {{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeAll}}}}
	c := graph.Component{Name: "w", Nodes: 2, Engine: graph.EngineVLLM}
	c.Contract, c.Devices = graph.ContractV1, []graph.DeviceClaim{{Template: "all"}}
	_, err := Count(&graph.Graph{Components: []graph.Component{c}}, all)
	if f, known := fault.From(err); !known || f.Class != fault.Invalid || !strings.Contains(f.Message, "ResourceClaimTemplate all") {
		t.Errorf("error %v", err)
	}
}

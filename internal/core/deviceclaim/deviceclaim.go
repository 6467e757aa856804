// Package deviceclaim counts the GPUs that pods claim by dynamic resource allocation
// where no limit says how many they have. It is pure: whoever reads the cluster asks
// it which templates and claims count, and brings what those ask for.
package deviceclaim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Kinds that a claim to devices is read from.
const (
	KindTemplate = "ResourceClaimTemplate"
	KindClaim    = "ResourceClaim"
)

// Requests are what templates and claims ask for. One that does not exist is not
// among them.
type Requests map[graph.Ref][]resourcev1.DeviceRequest

// Again is when a claim that does not exist is looked for again: templates are
// watched, claims are not, of which every pod has some.
const Again = 30 * time.Second

// Refs are the templates and claims of components that name no number of GPUs, in
// the order of their kinds and names.
func Refs(g *graph.Graph) []graph.Ref {
	var refs []graph.Ref
	for _, c := range g.Components {
		if !counts(c) {
			continue
		}
		for _, d := range c.Devices {
			refs = append(refs, ref(d))
		}
	}
	slices.SortFunc(refs, func(a, b graph.Ref) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.Compact(refs)
}

func counts(c graph.Component) bool {
	return contract.Of(c.Contract).Pods.ClaimedGPUs && c.Resources.GPUs == 0 && len(c.Devices) > 0
}

func ref(d graph.DeviceClaim) graph.Ref {
	if d.Template != "" {
		return graph.Ref{Kind: KindTemplate, Name: d.Template}
	}
	return graph.Ref{Kind: KindClaim, Name: d.Claim}
}

// Count is a graph whose components have the GPUs that they claim. An error tells of
// those that cannot be launched before their number is known.
func Count(g *graph.Graph, found Requests) (*graph.Graph, error) {
	counted := *g
	counted.Components = slices.Clone(g.Components)
	var errs []error
	for i := range counted.Components {
		c := &counted.Components[i]
		if !counts(*c) {
			continue
		}
		gpus, err := total(*c, found)
		switch {
		case err == nil:
			c.Resources.GPUs = gpus
		case c.Multinode() && engine.CountsGPUs(c.Engine):
			errs = append(errs, err)
		}
	}
	return &counted, errors.Join(errs...)
}

// Absent says which of what components claim by does not exist; nil if all does.
// Their pods are made and wait for it.
func Absent(g *graph.Graph, found Requests) error {
	var absent []string
	var again time.Duration
	for _, r := range Refs(g) {
		if _, exists := found[r]; exists {
			continue
		}
		absent = append(absent, r.Kind+" "+r.Name)
		if r.Kind == KindClaim {
			again = Again
		}
	}
	if len(absent) == 0 {
		return nil
	}
	return fault.New(fault.Waiting, v1alpha1.ReasonDeviceClaimNotFound,
		"%s does not exist, by which pods claim their devices; make it", strings.Join(absent, ", ")).Again(again)
}

// total is how many GPUs the claims of a component give.
func total(c graph.Component, found Requests) (int, error) {
	n := 0
	for _, d := range c.Devices {
		from := ref(d)
		requests, exists := found[from]
		if !exists {
			missing := fault.New(fault.Waiting, v1alpha1.ReasonDeviceClaimNotFound,
				"service %s spans %d nodes and claims its GPUs by %s %s, which does not exist; make it, or say how many by resources.limits.gpu", c.Name, c.Nodes, from.Kind, from.Name)
			if from.Kind == KindClaim {
				missing = missing.Again(Again)
			}
			return 0, missing
		}
		gpus, err := GPUs(requests, d.Request)
		if err != nil {
			return 0, fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed,
				"service %s spans %d nodes, and %s %s does not tell how many GPUs each has: %v; say it by resources.limits.gpu", c.Name, c.Nodes, from.Kind, from.Name, err)
		}
		n += gpus
	}
	return n, nil
}

// GPUs counts those that the requests of a claim give, or one of them if it is named.
func GPUs(requests []resourcev1.DeviceRequest, only string) (int, error) {
	n := 0
	for _, r := range requests {
		if only != "" && r.Name != only {
			continue
		}
		gpus, err := inRequest(r)
		if err != nil {
			return 0, fmt.Errorf("request %s %w", r.Name, err)
		}
		n += gpus
	}
	return n, nil
}

// inRequest is how many GPUs a request gives. Of alternatives the scheduler takes
// one, and nobody knows which.
func inRequest(r resourcev1.DeviceRequest) (int, error) {
	if r.Exactly != nil {
		return number(r.Exactly.DeviceClassName, r.Exactly.AllocationMode, r.Exactly.Count)
	}
	n := -1
	for _, alternative := range r.FirstAvailable {
		gpus, err := number(alternative.DeviceClassName, alternative.AllocationMode, alternative.Count)
		if err != nil {
			return 0, err
		}
		if n >= 0 && gpus != n {
			return 0, fmt.Errorf("has alternatives of %d and %d", n, gpus)
		}
		n = gpus
	}
	return max(0, n), nil
}

func number(class string, mode resourcev1.DeviceAllocationMode, count int64) (int, error) {
	switch {
	case !ofGPUs(class):
		return 0, nil
	case mode == resourcev1.DeviceAllocationModeExactCount || mode == "":
		return int(max(1, count)), nil
	default:
		return 0, fmt.Errorf("has allocationMode %s", mode)
	}
}

// ofGPUs reports whether a class of devices is one of GPUs. Drivers name it
// gpu.<vendor>; other devices are beside them, such as channels between nodes.
func ofGPUs(class string) bool {
	return slices.Contains(strings.Split(class, "."), "gpu")
}

package grove

import (
	"fmt"
	"maps"
	"strings"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// extension is what later versions of Grove know and our module for its API does not:
// a set that needs none of it stays typed.
type extension struct {
	// strategy is how pods are replaced; empty leaves that to Grove.
	strategy string
	topology any
	// cliques and groups are further fields, by the place of the clique or group.
	cliques, groups map[int]map[string]any
	claims          []any
}

// constrain packs the graph and the pods of a component into domains of the graph's
// topology. Grove refuses a constraint without a domain, so there is none to inherit the
// topology's name from.
func (e *extension) constrain(g *graph.Graph, c graph.Component, clique, group int) {
	if g.Topology == nil || g.Contract != graph.ContractV1 {
		return
	}
	if g.Topology.Domain != "" {
		e.topology = packed(g.Topology.Name, g.Topology.Domain)
	}
	switch constraint := packed(g.Topology.Name, c.PackDomain); {
	case c.PackDomain == "":
	case grouped(c):
		e.groups = set(e.groups, group, "topologyConstraint", constraint)
	default:
		e.cliques = set(e.cliques, clique, "topologyConstraint", constraint)
	}
}

func packed(topology, domain string) map[string]any {
	return map[string]any{"topologyName": topology, "pack": map[string]any{"required": domain}}
}

// share gives the engines and the server of each rank the same GPUs.
func (e *extension) share(c graph.Component, group int) {
	if !c.SharesAcrossPods() {
		return
	}
	var shared []any
	for rank := range int(c.Nodes) {
		name := fmt.Sprintf("%s-gpu-rank-%d", c.Clique, rank)
		e.claims = append(e.claims, map[string]any{
			"name": name,
			"templateSpec": map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"devices": map[string]any{"requests": []any{map[string]any{
				"name": "gpu",
				"exactly": map[string]any{
					"deviceClassName": c.GPUMemory.DeviceClass, "allocationMode": "ExactCount", "count": int64(c.Resources.GPUs),
				},
			}}}}},
		})
		shared = append(shared, map[string]any{
			"name": name, "scope": "PerReplica",
			"filter": map[string]any{"childCliqueNames": []any{serverClique(c, rank), engineClique(c, rank)}},
		})
	}
	e.groups = set(e.groups, group, "resourceSharing", shared)
}

func set(all map[int]map[string]any, at int, field string, value any) map[int]map[string]any {
	if all == nil {
		all = map[int]map[string]any{}
	}
	if all[at] == nil {
		all[at] = map[string]any{}
	}
	all[at][field] = value
	return all
}

// extend puts the further fields into a set.
func (e *extension) extend(typed *grovev1alpha1.PodCliqueSet) (graph.Object, error) {
	if e.strategy == "" && e.topology == nil && len(e.cliques) == 0 && len(e.groups) == 0 && len(e.claims) == 0 {
		return typed, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("PodCliqueSet %s: %w", typed.Name, err)
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet"))
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	spec := content["spec"].(map[string]any)
	template := spec["template"].(map[string]any)
	for field, further := range map[string]map[int]map[string]any{"cliques": e.cliques, "podCliqueScalingGroups": e.groups} {
		list, _ := template[field].([]any)
		for at, fields := range further {
			maps.Copy(list[at].(map[string]any), fields)
		}
	}
	if e.topology != nil {
		template["topologyConstraint"] = e.topology
	}
	if len(e.claims) > 0 {
		template["resourceClaimTemplates"] = e.claims
	}
	if e.strategy != "" {
		spec["updateStrategy"] = map[string]any{"type": strings.TrimSpace(e.strategy)}
	}
	return object, nil
}

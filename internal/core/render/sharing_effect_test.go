package render_test

import (
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestWhatHasNoEffectOnSharedMemoryHasNone, as users are told: a graph does not fail for
// it, and nothing is made for it.
func TestWhatHasNoEffectOnSharedMemoryHasNone(t *testing.T) {
	const within, across = "{componentType: worker, gpuMemoryService: {enabled: true}}", "{componentType: worker, gpuMemoryService: {enabled: true, mode: interPod}}"
	const front = "{componentType: frontend, gpuMemoryService: {enabled: true}}"
	for rule, c := range map[string]struct {
		service  string
		provider workload.Provider
		// old is a cluster without resource.k8s.io/v1.
		old           bool
		claims, fails bool
	}{
		"containers of a pod":                   {service: within, provider: workload.ProviderComponent, claims: true},
		"on an old cluster":                     {service: within, provider: workload.ProviderComponent, old: true, fails: true},
		"pods of Grove":                         {service: across, provider: workload.ProviderGrove, claims: true},
		"on an old cluster with Grove":          {service: across, provider: workload.ProviderGrove, old: true, fails: true},
		"pods of others, as the original does":  {service: across, provider: workload.ProviderComponent, claims: true},
		"pods of others on an old cluster":      {service: across, provider: workload.ProviderComponent, old: true},
		"a frontend, which has no weights":      {service: front, provider: workload.ProviderComponent},
		"a frontend on an old cluster":          {service: front, provider: workload.ProviderComponent, old: true},
		"a frontend of Grove":                   {service: front, provider: workload.ProviderGrove},
		"a frontend of Grove that would do so":  {service: strings.Replace(front, "true", "true, mode: interPod", 1), provider: workload.ProviderGrove},
		"a frontend of Grove on an old cluster": {service: front, provider: workload.ProviderGrove, old: true},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := sharer(t, c.service)
			g, err := graph.FromGraphDeployment(dgd, platform.Defaults)
			if err != nil {
				t.Fatal(err)
			}
			p := platform
			if c.old {
				p.Capabilities = snapshot.Capabilities{}
			}
			wanted, err := render.Graph(dgd, g, c.provider, p)
			if (err != nil) != c.fails {
				t.Errorf("fails: %v", err)
			}
			claims := slices.ContainsFunc(wanted, func(w graph.Desired) bool {
				_, ok := w.Object.(*resourcev1.ResourceClaimTemplate)
				return ok
			})
			if claims != c.claims {
				t.Errorf("a template of claims is made: %t, want %t", claims, c.claims)
			}
			if strings.Contains(c.service, "frontend") {
				if pod := podOf(t, dgd, c.provider); len(pod.InitContainers)+len(pod.ResourceClaims)+len(pod.Tolerations) > 0 || len(pod.Containers) != 1 {
					t.Errorf("the pod of a frontend has %d containers, %d before them, %d claims and %d tolerations", len(pod.Containers), len(pod.InitContainers), len(pod.ResourceClaims), len(pod.Tolerations))
				}
			}
		})
	}
}

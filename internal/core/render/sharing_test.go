package render_test

import (
	"strings"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// sharer is a graph of one service that shares the memory of GPUs.
func sharer(t *testing.T, service string) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Name: "g", Namespace: "ns", Annotations: map[string]string{
		v1alpha1.AnnotationDiscoveryMode: v1alpha1.DiscoveryModeContainer,
	}}}
	dgd.Spec.BackendFramework = v1alpha1.BackendFrameworkVLLM
	s := &v1alpha1.SharedSpec{Resources: &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}}
	if err := yaml.UnmarshalStrict([]byte(service), s); err != nil {
		t.Fatal(err)
	}
	s.ExtraPodSpec = &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "registry.example/vllm:1.4.1", Command: []string{"python3", "-m", "dynamo.vllm"}, Args: []string{"--model", "m"}}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"s": s}
	return dgd
}

// podOf is the pod of the only service, whatever runs it.
func podOf(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, provider workload.Provider) corev1.PodSpec {
	t.Helper()
	top, below, err := renderBoth(dgd)
	if provider == workload.ProviderGrove {
		top, err = renderGraph(dgd, provider)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(below, top) {
		for _, w := range l.wanted {
			switch o := w.Object.(type) {
			case *appsv1.Deployment:
				if provider == workload.ProviderComponent {
					return o.Spec.Template.Spec
				}
			case *grovev1alpha1.PodCliqueSet:
				return o.Spec.Template.Cliques[0].Spec.PodSpec
			}
		}
	}
	t.Fatal("it has no pods")
	return corev1.PodSpec{}
}

// TestEnginesOfAPodAreTheSameWhateverRunsThem: a component is stored as v1beta1 says it,
// which knows one shadow.
func TestEnginesOfAPodAreTheSameWhateverRunsThem(t *testing.T) {
	for _, shadows := range []string{"1", "2"} {
		dgd := sharer(t, `{componentType: worker, gpuMemoryService: {enabled: true}, failover: {enabled: true, mode: intraPod, numShadows: `+shadows+`}}`)
		for _, provider := range []workload.Provider{workload.ProviderComponent, workload.ProviderGrove} {
			t.Run(shadows+" by "+string(provider), func(t *testing.T) {
				var got []string
				for _, c := range podOf(t, dgd, provider).Containers {
					got = append(got, c.Name+" "+strings.Join(c.Args, " "))
				}
				want := []string{"engine-0 --model m", "engine-1 --model m --master-port 29600"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("engines (-want +got):\n%s", diff)
				}
			})
		}
	}
}

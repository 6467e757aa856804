package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// gateway is a graph with a gateway's endpoint picker.
func gateway() *v1alpha1.DynamoGraphDeployment {
	return &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "lab"},
		Spec: v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{
			"Frontend": {ComponentType: v1alpha1.ComponentTypeFrontend, Annotations: map[string]string{"note": "kept"}},
			"Epp": {ComponentType: v1alpha1.ComponentTypeEPP, EPPConfig: &v1alpha1.EPPConfig{Config: &runtime.RawExtension{
				Raw: []byte(`{"plugins":[{"type":"a"}],"schedulingProfiles":[{"name":"p","plugins":[{"pluginRef":"a"}]}]}`),
			}}},
		}},
	}
}

// rendered are the objects of type T that a graph becomes on a path, by name.
func rendered[T graph.Object](t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, provider workload.Provider) map[string]T {
	t.Helper()
	var (
		top   level
		below []level
		err   error
	)
	if provider == workload.ProviderGrove {
		top, err = renderGraph(dgd, provider)
	} else {
		top, below, err = renderBoth(dgd)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]T{}
	for _, l := range append(below, top) {
		for _, w := range l.wanted {
			if o, ok := w.Object.(T); ok {
				all[o.GetName()] = o
			}
		}
	}
	return all
}

func TestServicesOfEachPath(t *testing.T) {
	type want struct {
		Labels, Annotations map[string]string
		AppProtocol         *string
	}
	cases := map[string]struct {
		provider workload.Provider
		service  string
		want     want
	}{
		"a component's Service carries its labels and annotations; a frontend is not discovered": {
			workload.ProviderComponent, "chat-frontend",
			want{
				Labels: map[string]string{
					v1alpha1.LabelGraphName: "chat", v1alpha1.LabelComponent: "Frontend", v1alpha1.LabelDynamoNamespace: "lab-chat",
					v1alpha1.LabelDiscoveryBackend: "kubernetes",
				},
				Annotations: map[string]string{"note": "kept"},
			},
		},
		"a clique's Service carries what discovery needs alone": {
			workload.ProviderGrove, "chat-frontend",
			want{Labels: map[string]string{v1alpha1.LabelDiscoveryBackend: "kubernetes", v1alpha1.LabelDiscoveryEnabled: "true"}},
		},
		"a picker in a clique says that it speaks gRPC": {
			workload.ProviderGrove, "chat-epp",
			want{
				Labels:      map[string]string{v1alpha1.LabelDiscoveryBackend: "kubernetes", v1alpha1.LabelDiscoveryEnabled: "true"},
				AppProtocol: new("http2"),
			},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			service := rendered[*corev1.Service](t, gateway(), c.provider)[c.service]
			got := want{Labels: service.Labels, Annotations: service.Annotations, AppProtocol: service.Spec.Ports[0].AppProtocol}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Service (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPickersFileSpellsOutWhatIsNotSet(t *testing.T) {
	const want = `apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
- name: ""
  parameters: null
  type: a
schedulingProfiles:
- name: p
  plugins:
  - pluginRef: a
    weight: null
`
	config := rendered[*corev1.ConfigMap](t, gateway(), workload.ProviderComponent)["chat-epp-config"]
	if diff := cmp.Diff(want, config.Data[graph.PickerConfigKey]); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

// TestAServiceLeadsToAPortThatTheUserCallsOtherwise: by a name that no container has it
// would lead nowhere.
func TestAServiceLeadsToAPortThatTheUserCallsOtherwise(t *testing.T) {
	for _, provider := range []workload.Provider{workload.ProviderComponent, workload.ProviderGrove} {
		dgd := gateway()
		dgd.Spec.Services["Frontend"].ExtraPodSpec = &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{
			Image: "i", Ports: []corev1.ContainerPort{{Name: "openai", ContainerPort: 8000}},
		}}
		want := []corev1.ServicePort{{Name: "http", Port: 8000, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8000)}}
		if diff := cmp.Diff(want, rendered[*corev1.Service](t, dgd, provider)["chat-frontend"].Spec.Ports); diff != "" {
			t.Errorf("%s (-want +got):\n%s", provider, diff)
		}
	}
}

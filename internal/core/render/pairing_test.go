package render_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestFrontendsOfAllGenerationsAreReachedByTheSame: a paired graph makes what the
// component of a frontend makes otherwise, so that it stays when that goes.
func TestFrontendsOfAllGenerationsAreReachedByTheSame(t *testing.T) {
	dgd := &v1alpha1.DynamoGraphDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "lab"},
		Spec: v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{
			"Frontend": {
				ComponentType: v1alpha1.ComponentTypeFrontend, Annotations: map[string]string{"note": "kept"}, Labels: map[string]string{"team": "a"},
				Ingress: &v1alpha1.IngressSpec{Enabled: true, Host: "chat", IngressControllerClassName: new("nginx")},
			},
			"Worker": {ComponentType: v1alpha1.ComponentTypeWorker},
		}},
	}
	service := rendered[*corev1.Service](t, dgd, workload.ProviderComponent)["chat-frontend"]
	route := rendered[*networkingv1.Ingress](t, dgd, workload.ProviderComponent)["chat-frontend"]
	for _, generation := range []string{"", "12ab"} {
		t.Run("generation "+generation, func(t *testing.T) {
			annotations := map[string]string{v1alpha1.AnnotationGeneration: generation}
			g, err := graph.FromGraphDeployment(dgd, platform.Defaults)
			if err != nil {
				t.Fatal(err)
			}
			running := graph.Running{}
			if generation != "" {
				running.Names = map[string]string{"Frontend": "chat-frontend-12ab", "Worker": "chat-worker-12ab"}
			}
			wanted, err := render.Graph(dgd, g.Pair(annotations, running), workload.ProviderComponent, platform)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, w := range wanted {
				switch o := w.Object.(type) {
				case *corev1.Service:
					if len(names) > 0 {
						t.Error("components come before what they leave to the graph")
					}
					fronted(t, w, service)
					if diff := cmp.Diff(service.Spec, o.Spec); diff != "" {
						t.Errorf("Service (-component's +graph's):\n%s", diff)
					}
				case *networkingv1.Ingress:
					fronted(t, w, route)
					if diff := cmp.Diff(route.Spec, o.Spec); diff != "" {
						t.Errorf("Ingress (-component's +graph's):\n%s", diff)
					}
				case *v1alpha1.DynamoComponentDeployment:
					names = append(names, o.Name)
					o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))}
					one, err := graph.FromComponentDeployment(o, platform.Defaults)
					if err != nil {
						t.Fatal(err)
					}
					below, err := render.Component(one, platform)
					if err != nil {
						t.Fatal(err)
					}
					for _, w := range below {
						if _, is := w.Object.(*corev1.Service); is && one.Components[0].Role == graph.RoleFrontend && generation != "" {
							t.Errorf("the component of a frontend of one generation makes Service %s", w.GetName())
						}
					}
				}
			}
			want := []string{"chat-frontend", "chat-worker"}
			if generation != "" {
				want = []string{"chat-frontend-12ab", "chat-worker-12ab"}
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("components (-want +got):\n%s", diff)
			}
		})
	}
}

// fronted checks that an object of the graph is the component's, and says whose it is.
func fronted(t *testing.T, got graph.Desired, of graph.Object) {
	t.Helper()
	annotations := map[string]string{v1alpha1.AnnotationRolloutIsolation: v1alpha1.IsolationPaired}
	maps.Copy(annotations, of.GetAnnotations())
	if diff := cmp.Diff(annotations, got.GetAnnotations()); diff != "" || !got.FromChild || !graph.FrontOf(got) || got.GetName() != of.GetName() {
		t.Errorf("%s is handed over: %v, annotations (-want +got):\n%s", got.GetName(), got.FromChild, diff)
	}
	if diff := cmp.Diff(of.GetLabels(), got.GetLabels()); diff != "" {
		t.Errorf("labels (-component's +graph's):\n%s", diff)
	}
}

package deployment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestADeadlineIsSaidWhereItIsNotTheServersOwn(t *testing.T) {
	for deadline, want := range map[time.Duration]*int32{0: nil, 10 * time.Minute: nil, time.Hour: new(int32(3600))} {
		d := deployment(graph.Component{}, corev1.PodTemplateSpec{}, deadline)
		if diff := cmp.Diff(want, d.Spec.ProgressDeadlineSeconds); diff != "" {
			t.Error(deadline, diff)
		}
	}
}

func TestAPodStaysReadyBeforeItCounts(t *testing.T) {
	for rule, c := range map[string]struct {
		asked           string
		deadline        time.Duration
		least           int32
		deadlineSeconds *int32
	}{
		"not unless asked":                       {"", 0, 0, nil},
		"as long as asked":                       {"30", 0, 30, nil},
		"and the deadline is longer than that":   {"900", 10 * time.Minute, 900, new(int32(1500))},
		"a deadline that is long enough is kept": {"30", time.Hour, 30, new(int32(3600))},
		"what is no number is not asked":         {"soon", 0, 0, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			component := graph.Component{Annotations: map[string]string{v1alpha1.AnnotationMinReadySeconds: c.asked}}
			spec := deployment(component, corev1.PodTemplateSpec{}, c.deadline).Spec
			if spec.MinReadySeconds != c.least {
				t.Errorf("%d s", spec.MinReadySeconds)
			}
			if diff := cmp.Diff(c.deadlineSeconds, spec.ProgressDeadlineSeconds); diff != "" {
				t.Error("deadline: -want +got", diff)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	c := graph.Component{ObjectName: "chat-decode", Replicas: 2}
	ready := appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	cases := map[string]struct {
		change func(d *appsv1.Deployment)
		why    string
	}{
		"all replicas of the current spec are available": {func(*appsv1.Deployment) {}, ""},
		"a spec that was not observed yet is not done":   {func(d *appsv1.Deployment) { d.Generation = 4 }, "Deployment has not been observed yet"},
		"an old replica that still runs is not done":     {func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, "1 old replicas are still terminating"},
		"replicas of the old spec are not done":          {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, "1 of 2 replicas updated"},
		"a replica that is not available is not done":    {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }, "1 of 2 replicas available"},
		"a scaling that was not written yet is not done": {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) }, "Deployment is being scaled to 2"},
		"a paused Deployment cannot be done":             {func(d *appsv1.Deployment) { d.Spec.Paused = true }, "Deployment is paused"},
	}
	for rule, tc := range cases {
		t.Run(rule, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "chat-decode", Generation: 3}, Status: ready}
			d.Spec.Replicas = new(int32(2))
			tc.change(d)
			p := progress(c, snapshot.Snapshot{Owned: []graph.Object{d}})
			if p.Why != tc.why || p.Done != (tc.why == "") {
				t.Errorf("done %v, why %q; want %q", p.Done, p.Why, tc.why)
			}
		})
	}
	t.Run("a Deployment that was written since it was seen is not done", func(t *testing.T) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "chat-decode", Generation: 3}, Status: ready}
		d.Spec.Replicas = new(int32(2))
		p := progress(c, snapshot.Snapshot{Owned: []graph.Object{d}, Written: []graph.Ref{{Kind: "Deployment", Name: "chat-decode"}}})
		if p.Done {
			t.Error("done, although the new spec was not seen yet")
		}
	})
	t.Run("zero replicas that were asked for are done", func(t *testing.T) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "chat-decode"}}
		d.Spec.Replicas = new(int32(0))
		none := graph.Component{ObjectName: "chat-decode"}
		if p := progress(none, snapshot.Snapshot{Owned: []graph.Object{d}}); !p.Done {
			t.Errorf("not done: %s", p.Why)
		}
	})
	t.Run("a Deployment that does not exist shows zero replicas", func(t *testing.T) {
		if p := progress(c, snapshot.Snapshot{}); p.Done || p.Name != "chat-decode" || p.Replicas != 0 {
			t.Errorf("progress %+v", p)
		}
	})
}

func TestStrategy(t *testing.T) {
	rolling := func(surge, unavailable intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}}
	}
	cases := map[string]struct {
		annotations map[string]string
		want        appsv1.DeploymentStrategy
	}{
		"a quarter at a time by default": {nil, rolling(intstr.FromString("25%"), intstr.FromString("25%"))},
		"numbers and shares are taken": {
			map[string]string{v1alpha1.AnnotationMaxSurge: "0", v1alpha1.AnnotationMaxUnavailable: "50%"},
			rolling(intstr.FromInt32(0), intstr.FromString("50%")),
		},
		"Recreate needs no spare GPU":        {map[string]string{v1alpha1.AnnotationDeploymentStrategy: "Recreate"}, appsv1.DeploymentStrategy{Type: "Recreate"}},
		"an unknown strategy is the default": {map[string]string{v1alpha1.AnnotationDeploymentStrategy: "BlueGreen"}, rolling(intstr.FromString("25%"), intstr.FromString("25%"))},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, strategy(graph.Component{Annotations: c.annotations})); diff != "" {
				t.Errorf("strategy (-want +got):\n%s", diff)
			}
		})
	}
}

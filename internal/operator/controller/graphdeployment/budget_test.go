package graphdeployment

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/budget"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// wants is a graph of one service with GPUs.
func wants(namespace, name string, replicas int32, annotations map[string]string) *v1alpha1.DynamoGraphDeployment {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Annotations: annotations}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
		"Frontend": {ComponentType: v1alpha1.ComponentTypeFrontend, Replicas: new(replicas)},
		"Worker":   {ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(replicas), Resources: &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "2"}}},
	}
	return dgd
}

func podOf(namespace, name, graphName string, ends bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelGraphName: graphName, v1alpha1.LabelComponent: "Worker"},
	}}
	if ends {
		pod.Finalizers, pod.DeletionTimestamp = []string{"test/holds"}, &metav1.Time{Time: time.Unix(1, 0)}
	}
	return pod
}

// placed is a pod that has a node and GPUs of it.
func placed(pod *corev1.Pod, gpus string) *corev1.Pod {
	pod.Spec.NodeName = "n"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}}}}
	return pod
}

// ranked is a pod to which admission gave the value of its PriorityClass.
func ranked(pod *corev1.Pod, priority int32) *corev1.Pod {
	pod.Spec.Priority = &priority
	return pod
}

// of is a pod of another service.
func of(service string, pod *corev1.Pod) *corev1.Pod {
	pod.Labels[v1alpha1.LabelComponent] = service
	return pod
}

func pending(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.NodeName = ""
	return pod
}

// unreadable is a graph whose spec nobody can read.
func unreadable(dgd *v1alpha1.DynamoGraphDeployment) *v1alpha1.DynamoGraphDeployment {
	dgd.Spec.Services["Worker"].Resources.Limits.GPU = "two"
	return dgd
}

// claimed is a graph whose workers claim their GPUs by a template.
func claimed(dgd *v1alpha1.DynamoGraphDeployment) *v1alpha1.DynamoGraphDeployment {
	dgd.Annotations = map[string]string{v1alpha1.AnnotationOriginVersion: "1.4.1"}
	worker := dgd.Spec.Services["Worker"]
	worker.Resources = &v1alpha1.Resources{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}
	worker.ExtraPodSpec = &v1alpha1.ExtraPodSpec{PodSpec: &corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: new("two")}}}}
	return dgd
}

func template(namespace string) *resourcev1.ResourceClaimTemplate {
	t := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "two"}}
	t.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 2}}}
	return t
}

func ledger(t *testing.T, b budget.Budgets, objects ...client.Object) *Ledger {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...)
	if err := observe.IndexPods(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	facts := observe.Facts{Cached: builder.Build(), Served: &atomic.Pointer[snapshot.Capabilities]{}, Devices: &atomic.Bool{}}
	facts.Served.Store(&snapshot.Capabilities{})
	facts.Devices.Store(true)
	return &Ledger{Budgets: b, Facts: facts}
}

// indexer is the informers' in a client that is none.
type indexer struct{ of *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	i.of.WithIndex(object, field, values)
	return nil
}

func ask(t *testing.T, l *Ledger, dgd *v1alpha1.DynamoGraphDeployment, at time.Time) (budgeted, string) {
	t.Helper()
	g, err := graph.FromGraphDeployment(dgd, graph.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	b, limits, err := l.grant(t.Context(), dgd, g, at)
	if err != nil {
		t.Fatal(err)
	}
	return b, limited(limits)
}

func TestReplicasAreGrantedOutOfBudgets(t *testing.T) {
	noon := time.Unix(100000, 0)
	own := map[string]string{v1alpha1.AnnotationGPUBudget: "4"}
	for _, x := range []struct {
		rule    string
		budgets budget.Budgets
		graph   *v1alpha1.DynamoGraphDeployment
		others  []client.Object
		want    map[string]int
		says    string
	}{
		{"without a budget nothing is looked at", budget.Budgets{}, wants("lab", "a", 5, nil), nil, nil, ""},
		{"another namespace's budget is none", budget.Budgets{Namespaces: map[string]int{"x": 1}}, wants("lab", "a", 5, nil), nil, nil, ""},
		{"a graph's own", budget.Budgets{}, wants("lab", "a", 5, own), nil, map[string]int{"Worker": 2}, "Worker has 2 of 5 replicas: the budget of graph a is 4 GPUs"},
		{"a budget that is no number has no effect", budget.Budgets{}, wants("lab", "a", 5, map[string]string{v1alpha1.AnnotationGPUBudget: "4 GPUs"}), nil, nil, ""},
		{"pods that end hold their GPUs", budget.Budgets{}, wants("lab", "a", 5, own), []client.Object{podOf("lab", "a-1", "a", true)}, map[string]int{"Worker": 1}, "Worker has 1 of 5 replicas: the budget of graph a is 4 GPUs"},
		{
			"another graph's count", budget.Budgets{Cluster: 6}, wants("lab", "a", 5, nil),
			[]client.Object{wants("other", "b", 2, nil), podOf("other", "b-1", "b", false), podOf("other", "b-2", "b", false)},
			map[string]int{"Worker": 1}, "held by other/b Worker",
		},
		{
			"pods that nobody wants any more count until they are gone", budget.Budgets{Namespaces: map[string]int{"lab": 4}}, wants("lab", "a", 5, nil),
			[]client.Object{wants("lab", "b", 0, nil), podOf("lab", "b-1", "b", true)}, map[string]int{"Worker": 1}, "held by lab/b Worker",
		},
		{
			"and those of a graph that is gone", budget.Budgets{Cluster: 6}, wants("lab", "a", 5, nil),
			[]client.Object{placed(podOf("other", "b-1", "b", true), "2"), placed(podOf("other", "b-2", "b", false), "2")}, map[string]int{"Worker": 1}, "held by other/b Worker",
		},
		{
			"a pod without a node has no GPUs that nobody wants", budget.Budgets{Cluster: 4}, wants("lab", "a", 2, nil),
			[]client.Object{pending(placed(podOf("lab", "b-1", "b", false), "2"))}, map[string]int{"Worker": 2}, "",
		},
		{
			"components without a graph are not counted", budget.Budgets{Cluster: 4}, wants("lab", "a", 2, nil),
			[]client.Object{&v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "b"}}, placed(podOf("lab", "b-1", "b", false), "2")}, map[string]int{"Worker": 2}, "",
		},
		{
			"a graph that cannot be read holds what its pods have", budget.Budgets{Namespaces: map[string]int{"lab": 4}}, wants("lab", "a", 5, nil),
			[]client.Object{unreadable(wants("lab", "b", 1, nil)), placed(podOf("lab", "b-1", "b", false), "2")}, map[string]int{"Worker": 1}, "held by lab/b Worker",
		},
		{
			"GPUs that another graph claims by a template count", budget.Budgets{Cluster: 6}, wants("lab", "a", 5, nil),
			[]client.Object{claimed(wants("other", "b", 2, nil)), template("other"), podOf("other", "b-1", "b", false), podOf("other", "b-2", "b", false)}, map[string]int{"Worker": 1}, "held by other/b Worker",
		},
		{
			"what a graph has of a service that it lacks counts", budget.Budgets{}, wants("lab", "a", 5, own),
			[]client.Object{of("Old", placed(podOf("lab", "a-1", "a", false), "2"))}, map[string]int{"Worker": 1}, "Worker has 1 of 5 replicas: the budget of graph a is 4 GPUs",
		},
		{
			"and what another has", budget.Budgets{Cluster: 6}, wants("lab", "a", 5, nil),
			[]client.Object{wants("other", "b", 0, nil), of("Old", placed(podOf("other", "b-1", "b", false), "4"))}, map[string]int{"Worker": 1}, "held by other/b Old",
		},
	} {
		t.Run(x.rule, func(t *testing.T) {
			b, said := ask(t, ledger(t, x.budgets, x.others...), x.graph, noon)
			if diff := cmp.Diff(x.want, b.granted); diff != "" {
				t.Error(diff)
			}
			if (said == "") != (x.says == "") || !strings.Contains(said, x.says) {
				t.Errorf("says %q", said)
			}
		})
	}
}

// TestTheClassOfPodsOrdersGraphs: of 12 GPUs there are six replicas, for two graphs that want
// five each.
func TestTheClassOfPodsOrdersGraphs(t *testing.T) {
	pod := func(name string) *corev1.Pod { return podOf("lab", name, "a", false) }
	annotated := func(n string) map[string]string { return map[string]string{v1alpha1.AnnotationScalingPriority: n} }
	for _, x := range []struct {
		rule      string
		own       map[string]string
		pods      []client.Object
		namespace string // of the other
		other     map[string]string
		class     int32 // of its pod
		want      int
	}{
		{"without one they share", nil, []client.Object{pod("a-1")}, "other", nil, 0, 3},
		{"the higher comes first", nil, []client.Object{ranked(pod("a-1"), 1000)}, "other", nil, 0, 5},
		{"whatever the other says of itself", nil, []client.Object{ranked(pod("a-1"), 1000)}, "other", annotated("2000"), 0, 5},
		{"the lower last", nil, []client.Object{ranked(pod("a-1"), -1)}, "other", nil, 0, 1},
		{"an annotation is no class", annotated("1000"), []client.Object{pod("a-1")}, "other", nil, 0, 3},
		{"one pod does not lift the others", nil, []client.Object{ranked(pod("a-1"), 1000), pod("a-2")}, "other", nil, 0, 3},
		{"one that ends does not hold them back", nil, []client.Object{ranked(pod("a-1"), 1000), podOf("lab", "a-2", "a", true)}, "other", nil, 0, 4},
		{"nor does one without GPUs, or lift them", nil, []client.Object{pod("a-1"), of("Frontend", ranked(pod("a-2"), 1000))}, "other", nil, 0, 3},
		{"in a namespace, too", nil, []client.Object{ranked(pod("a-1"), 1000)}, "lab", nil, 0, 5},
		{"where it comes before annotations", annotated("1"), []client.Object{ranked(pod("a-1"), 1000)}, "lab", annotated("2000"), 0, 5},
		{"which order those of one class", annotated("10"), []client.Object{ranked(pod("a-1"), 1000)}, "lab", nil, 1000, 5},
		{"whatever its value", annotated("-10"), []client.Object{ranked(pod("a-1"), -1000)}, "lab", nil, -1000, 1},
	} {
		t.Run(x.rule, func(t *testing.T) {
			others := append([]client.Object{wants(x.namespace, "b", 5, x.other), ranked(podOf(x.namespace, "b-1", "b", false), x.class)}, x.pods...)
			b, _ := ask(t, ledger(t, budget.Budgets{Cluster: 12}, others...), wants("lab", "a", 5, x.own), time.Unix(100000, 0))
			if got := b.granted["Worker"]; got != x.want {
				t.Errorf("%d replicas, want %d", got, x.want)
			}
		})
	}
}

// TestAClassTakesNothingForPodsThatAreRefused: a quota admits few pods of a's class, and all of
// b's, which is lower. Of 24 GPUs there are twelve replicas.
func TestAClassTakesNothingForPodsThatAreRefused(t *testing.T) {
	for _, x := range []struct {
		rule  string
		quota int
		want  map[string]int
	}{
		{"one more than there are is held for it", 1, map[string]int{"a": 2, "b": 10}},
		{"of several, too", 4, map[string]int{"a": 5, "b": 7}},
		{"who is refused nothing gets all", 12, map[string]int{"a": 11, "b": 1}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			a, b := wants("lab", "a", 12, nil), wants("other", "b", 12, nil)
			l := ledger(t, budget.Budgets{Cluster: 24}, a, b)
			pods, noon := map[string]int{}, time.Unix(100000, 0)
			admit := func(dgd *v1alpha1.DynamoGraphDeployment, class int32, n int) {
				for ; pods[dgd.Name] < n; pods[dgd.Name]++ {
					create(t, l, ranked(podOf(dgd.Namespace, fmt.Sprintf("%s-%d", dgd.Name, pods[dgd.Name]), dgd.Name, false), class))
				}
				for ; pods[dgd.Name] > n; pods[dgd.Name]-- {
					remove(t, l, podOf(dgd.Namespace, fmt.Sprintf("%s-%d", dgd.Name, pods[dgd.Name]-1), dgd.Name, false))
				}
			}
			got := map[string]int{}
			for after := time.Duration(0); after < time.Hour; after += limitedAgain {
				forA, _ := ask(t, l, a, noon.Add(after))
				forB, _ := ask(t, l, b, noon.Add(after))
				got["a"], got["b"] = forA.granted["Worker"], forB.granted["Worker"]
				admit(a, 1000, min(got["a"], x.quota))
				admit(b, 500, got["b"])
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAGraphThatLosesItsPodsKeepsTheirClassForAWhile: of 12 GPUs there are six replicas, for two
// graphs that want five each. Those of a are gone, such as with their node.
func TestAGraphThatLosesItsPodsKeepsTheirClassForAWhile(t *testing.T) {
	for _, x := range []struct {
		rule         string
		class, other int32
		after        time.Duration
		want         int
	}{
		{"a high one", 1000, 500, time.Minute, 5},
		{"a low one, which is not above another", -10, -5, time.Minute, 1},
		{"but not for ever", 1000, 500, time.Hour, 1},
	} {
		t.Run(x.rule, func(t *testing.T) {
			a, pod := wants("lab", "a", 5, nil), ranked(podOf("lab", "a-1", "a", false), x.class)
			l := ledger(t, budget.Budgets{Cluster: 12}, wants("other", "b", 5, nil), ranked(podOf("other", "b-1", "b", false), x.other), pod)
			noon := time.Unix(100000, 0)
			ask(t, l, a, noon)
			remove(t, l, pod)
			delete(l.granted, a.UID) // as far as it is cut one by one
			if b, _ := ask(t, l, a, noon.Add(x.after)); b.granted["Worker"] != x.want {
				t.Errorf("%d replicas, want %d", b.granted["Worker"], x.want)
			}
		})
	}
}

func create(t *testing.T, l *Ledger, pod *corev1.Pod) {
	t.Helper()
	if err := l.Facts.Cached.(client.Client).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, l *Ledger, pod *corev1.Pod) {
	t.Helper()
	if err := l.Facts.Cached.(client.Client).Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

func TestWhoseBudgetLimitsIsToldByService(t *testing.T) {
	for _, x := range []struct {
		rule   string
		limits []budget.Limit
		want   map[string]string
	}{
		{"nobody's", nil, nil},
		{"one's for each service", []budget.Limit{{Service: "d", Budget: "graph a"}, {Service: "p", Budget: "cluster"}}, map[string]string{"d": "graph a", "p": "cluster"}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			if diff := cmp.Diff(x.want, limitedBy(x.limits), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABudgetThatIsSetAgainTakesOneReplicaAtATime(t *testing.T) {
	dgd := wants("lab", "a", 10, nil)
	dgd.Spec.Services["Worker"].Resources.Limits.GPU = "1"
	var pods []client.Object
	for i := range 10 {
		pods = append(pods, podOf("lab", fmt.Sprintf("a-%d", i), "a", false))
	}
	l, few := ledger(t, budget.Budgets{}, pods...), ledger(t, budget.Budgets{})
	noon := time.Unix(100000, 0)
	step := func(budget string, at time.Duration) map[string]int {
		dgd.Annotations = nil
		if budget != "" {
			dgd.Annotations = map[string]string{v1alpha1.AnnotationGPUBudget: budget}
		}
		b, _ := ask(t, l, dgd, noon.Add(at))
		return b.granted
	}
	all := l.Facts
	l.Facts = few.Facts // before there are pods
	got := []map[string]int{step("2", 0), step("", time.Hour)}
	l.Facts = all
	got = append(got, step("8", 2*time.Hour))
	if diff := cmp.Diff([]map[string]int{{"Worker": 2}, nil, {"Worker": 9}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestAServiceThatComesBackKeepsWhatItHas: while its graph lacked it nothing was granted.
func TestAServiceThatComesBackKeepsWhatItHas(t *testing.T) {
	dgd := wants("lab", "a", 4, map[string]string{v1alpha1.AnnotationGPUBudget: "4"})
	var pods []client.Object
	for i := range 4 {
		pods = append(pods, placed(podOf("lab", fmt.Sprintf("a-%d", i), "a", false), "2"))
	}
	l := ledger(t, budget.Budgets{}, pods...)
	noon := time.Unix(100000, 0)
	lacks := dgd.DeepCopy()
	delete(lacks.Spec.Services, "Worker")
	if b, said := ask(t, l, lacks, noon); len(b.granted) > 0 || said != "" {
		t.Errorf("%v is granted: %s", b.granted, said)
	}
	if b, _ := ask(t, l, dgd, noon); b.granted["Worker"] != 3 { // cut by one
		t.Errorf("%v is granted", b.granted)
	}
}

func TestWhatWasGrantedCountsBeforeItIsSeen(t *testing.T) {
	a, b := wants("lab", "a", 2, nil), wants("lab", "b", 2, nil)
	l := ledger(t, budget.Budgets{Cluster: 4}, a, b)
	noon := time.Unix(100000, 0)
	first, _ := ask(t, l, a, noon)
	second, _ := ask(t, l, b, noon)
	if first.granted["Worker"]+second.granted["Worker"] > 2 {
		t.Errorf("%v and %v of GPUs for two", first.granted, second.granted)
	}
}

func TestADonorGivesUpOneReplicaAMinute(t *testing.T) {
	a, b := wants("lab", "a", 4, nil), wants("lab", "b", 4, nil)
	a.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"Worker": {Replicas: 4}}
	l := ledger(t, budget.Budgets{Cluster: 8}, a, b)
	noon := time.Unix(100000, 0)
	ask(t, l, a, noon) // as it runs, and is cut by one
	var had []int
	for _, after := range []time.Duration{10 * time.Second, 61 * time.Second, 70 * time.Second, 2 * time.Hour, 3 * time.Hour} {
		got, _ := ask(t, l, a, noon.Add(after))
		had = append(had, got.granted["Worker"])
	}
	if diff := cmp.Diff([]int{3, 2, 2, 2, 2}, had); diff != "" {
		t.Error(diff)
	}
}

func TestARoleGivesItsGPUsToAnother(t *testing.T) {
	dgd := wants("lab", "a", 1, map[string]string{v1alpha1.AnnotationGPUBudget: "8"})
	dgd.Spec.Services["Other"] = dgd.Spec.Services["Worker"].DeepCopy()
	l := ledger(t, budget.Budgets{})
	noon := time.Unix(100000, 0)
	step := func(worker, other int32) (map[string]int, string) {
		dgd.Spec.Services["Worker"].Replicas, dgd.Spec.Services["Other"].Replicas = new(worker), new(other)
		b, said := ask(t, l, dgd, noon)
		return b.granted, said
	}
	if got, said := step(9, 1); got["Worker"] != 3 || got["Other"] != 1 || said == "" {
		t.Errorf("%v, %q", got, said)
	}
	// What is given up is held until it is seen to be.
	if got, said := step(1, 3); got["Worker"] != 1 || got["Other"] != 1 || !strings.Contains(said, "not free yet") {
		t.Errorf("%v, %q", got, said)
	}
	for i := range 3 {
		if got, said := step(1, 3); got["Worker"] != 1 || got["Other"] != 3 || said != "" {
			t.Errorf("look %d: %v, %q", i, got, said)
		}
	}
}

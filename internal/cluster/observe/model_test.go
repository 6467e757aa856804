package observe

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

const base = "org/base"

func podAt(namespace, name, address string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Labels: labels},
		Status:     corev1.PodStatus{PodIP: address, ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}, {Name: "sidecar"}}},
	}
}

func endpointOf(pod *corev1.Pod, address string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod.Name, UID: pod.UID}}
}

func sliceOf(namespace, name, model string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			v1alpha1.LabelBaseModelHash: graph.ModelHash(model), discoveryv1.LabelServiceName: graph.ModelService(model),
		}},
		Endpoints: endpoints,
	}
}

func TestWorldOfAModel(t *testing.T) {
	a, b := podAt("n", "a", "10.0.0.1", nil), podAt("n", "b", "10.0.0.2", nil)
	follower := podAt("n", "f", "10.0.0.3", map[string]string{v1alpha1.LabelGroupRole: v1alpha1.RoleWorker})
	clique := podAt("n", "g", "10.0.0.4", map[string]string{"grove.io/podclique": "x-0-decode-wkr"})
	foreign := podAt("other", "x", "10.0.0.5", nil)
	unready, leaving := endpointOf(b, "10.0.0.2"), endpointOf(b, "10.0.0.2")
	unready.Conditions.Ready = new(false)
	leaving.Conditions = discoveryv1.EndpointConditions{Ready: new(true), Terminating: new(true)}
	stale := endpointOf(b, "10.0.0.2")
	stale.TargetRef.UID = "of the pod before"
	known := func(pod *corev1.Pod) loraplan.Endpoint {
		return loraplan.Endpoint{Address: netip.MustParseAddr(pod.Status.PodIP), Pod: pod.Name, Run: loraplan.Run(pod.UID), Ready: true}
	}
	with := func(e loraplan.Endpoint, change func(*loraplan.Endpoint)) loraplan.Endpoint {
		change(&e)
		return e
	}
	cases := map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   []loraplan.Endpoint
	}{
		"pods of the base model, by name": {
			[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, endpointOf(b, "10.0.0.2")), sliceOf("n", "2", base, endpointOf(a, "10.0.0.1"))},
			[]loraplan.Endpoint{known(a), known(b)},
		},
		"not those of another": {[]*discoveryv1.EndpointSlice{sliceOf("n", "1", "org/other", endpointOf(a, "10.0.0.1"))}, nil},
		"not those of another namespace": {
			[]*discoveryv1.EndpointSlice{sliceOf("other", "1", base, endpointOf(foreign, "10.0.0.5")), sliceOf("n", "2", base, endpointOf(foreign, "10.0.0.5"))}, nil,
		},
		"a pod with two addresses is one engine": {
			[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, endpointOf(a, "10.0.0.1")), sliceOf("n", "2", base, endpointOf(a, "fd00::1"))},
			[]loraplan.Endpoint{known(a)},
		},
		"an address that the pod does not have is not its": {[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, endpointOf(a, "10.96.0.1"))}, nil},
		"nor is one of nobody":                             {[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}})}, nil},
		"nor one of the pod before":                        {[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, stale)}, nil},
		"followers serve no API":                           {[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, endpointOf(follower, "10.0.0.3"), endpointOf(clique, "10.0.0.4"))}, nil},
		"readiness is told": {
			[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, unready)},
			[]loraplan.Endpoint{with(known(b), func(e *loraplan.Endpoint) { e.Ready = false })},
		},
		"leaving is told": {
			[]*discoveryv1.EndpointSlice{sliceOf("n", "1", base, leaving)},
			[]loraplan.Endpoint{with(known(b), func(e *loraplan.Endpoint) { e.Leaving = true })},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			objects := []client.Object{a, b, follower, clique, foreign}
			for _, s := range c.slices {
				objects = append(objects, s)
			}
			w, err := modelsOver(t, objects...).World(t.Context(), lora("m", "u", "adapter", "s3://b/a", 1))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, w.Endpoints, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimsOfOtherModels(t *testing.T) {
	me := lora("m", "m", "adapter", "s3://b/a", 5)
	noting := func(dm *v1alpha1.DynamoModel, name, uri string) *v1alpha1.DynamoModel {
		dm.Annotations = map[string]string{v1alpha1.AnnotationLoadedAdapters: loraplan.EncodeNote([]loraplan.Adapter{{Name: name, URI: uri}})}
		return dm
	}
	cases := map[string]struct {
		sibling *v1alpha1.DynamoModel
		shared  []loraplan.Adapter
		rival   string
		holder  string
	}{
		"another adapter is its own":                  {lora("s", "s", "other", "s3://b/o", 1), []loraplan.Adapter{{Name: "other", URI: "s3://b/o"}}, "", ""},
		"the same adapter is shared":                  {lora("s", "s", "adapter", "s3://b/a", 1), []loraplan.Adapter{{Name: "adapter", URI: "s3://b/a"}}, "", ""},
		"an older one from elsewhere is a rival":      {lora("s", "s", "adapter", "s3://b/x", 1), []loraplan.Adapter{{Name: "adapter", URI: "s3://b/x"}}, "s", ""},
		"a younger one from elsewhere claims nothing": {lora("s", "s", "adapter", "s3://b/x", 9), nil, "", ""},
		"but holds the name until it has unloaded":    {noting(lora("s", "s", "adapter", "s3://b/x", 9), "adapter", "s3://b/x"), nil, "", "s"},
		"so does one that gave the name up":           {noting(lora("s", "s", "other", "s3://b/o", 1), "adapter", "s3://b/x"), []loraplan.Adapter{{Name: "other", URI: "s3://b/o"}}, "", "s"},
		"who holds the same holds up nobody":          {noting(lora("s", "s", "adapter", "s3://b/a", 9), "adapter", "s3://b/a"), []loraplan.Adapter{{Name: "adapter", URI: "s3://b/a"}}, "", ""},
		"of the same age the name decides":            {lora("a", "s", "adapter", "s3://b/x", 5), []loraplan.Adapter{{Name: "adapter", URI: "s3://b/x"}}, "a", ""},
		"one that is being deleted claims nothing":    {deleted(lora("s", "s", "adapter", "s3://b/a", 1)), nil, "", ""},
		"but is a rival until it is gone":             {deleted(lora("s", "s", "adapter", "s3://b/x", 1)), nil, "s", ""},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var w loraplan.World
			claims(&w, me, []v1alpha1.DynamoModel{*me, *c.sibling})
			if diff := cmp.Diff(loraplan.World{Shared: c.shared, Rival: c.rival, Holder: c.holder}, w, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARestartedEngineIsAnotherRun(t *testing.T) {
	before := podAt("n", "a", "10.0.0.1", nil)
	sidecar, engine := before.DeepCopy(), before.DeepCopy()
	sidecar.Status.ContainerStatuses[1].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "1"}
	engine.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "1"}
	if RunOf(sidecar) != RunOf(before) || RunOf(engine) == RunOf(before) {
		t.Errorf("before %s, sidecar %s, engine %s", RunOf(before), RunOf(sidecar), RunOf(engine))
	}
	kept, err := TrimPod(engine)
	if err != nil {
		t.Fatal(err)
	}
	if RunOf(kept.(*corev1.Pod)) != RunOf(engine) {
		t.Error("what the stores keep of a pod does not tell")
	}
}

func modelsOver(t *testing.T, objects ...client.Object) Models {
	t.Helper()
	indexed := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...)
	for _, index := range modelIndexes {
		indexed = indexed.WithIndex(index.of, baseModelHash, index.by)
	}
	return Models{Reader: indexed.Build()}
}

func lora(name, uid, adapter, uri string, age int64) *v1alpha1.DynamoModel {
	return &v1alpha1.DynamoModel{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(uid), CreationTimestamp: metav1.Unix(age, 0)},
		Spec: v1alpha1.DynamoModelSpec{
			ModelName: adapter, BaseModelName: base, ModelType: v1alpha1.ModelTypeLoRA, Source: &v1alpha1.ModelSource{URI: uri},
		},
	}
}

func deleted(dm *v1alpha1.DynamoModel) *v1alpha1.DynamoModel {
	dm.DeletionTimestamp = &metav1.Time{}
	return dm
}

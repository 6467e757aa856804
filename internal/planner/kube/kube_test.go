package kube

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryfake "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
)

const alpha = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat, namespace: lab, resourceVersion: "7"}
spec:
  services:
    Frontend: {componentType: frontend}
    Decode: {componentType: worker, subComponentType: decode, replicas: 2, resources: {limits: {gpu: "2"}}}
    Prefill: {componentType: worker, subComponentType: prefill, scalingAdapter: {enabled: true}}
status:
  services:
    Decode: {componentKind: Deployment, componentName: chat-decode, replicas: 2, updatedReplicas: 2, readyReplicas: 1}
`

const beta = `
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat, namespace: lab, resourceVersion: "7"}
spec:
  components:
  - {name: Frontend, type: frontend}
  - {name: Decode, type: decode, replicas: 2}
  - {name: Prefill, type: prefill, scalingAdapter: {}}
`

const adapter = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentScalingAdapter
metadata: {name: chat-prefill, namespace: lab}
spec: {replicas: 3, dgdRef: {name: chat, serviceName: Prefill}}
`

const slice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: chat-frontend-1, namespace: lab, labels: {kubernetes.io/service-name: chat-frontend}}
addressType: IPv4
ports: [{name: http, port: 8000}]
endpoints:
- {addresses: [10.0.0.2], conditions: {ready: true}}
- {addresses: [10.0.0.1], conditions: {}}
- {addresses: [10.0.0.3], conditions: {ready: false}}
- {addresses: [10.0.0.4], conditions: {ready: true, terminating: true}}
`

const ending = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: chat-decode-1, namespace: lab, labels: {kubernetes.io/service-name: chat-decode}}
addressType: IPv4
ports: [{name: system, port: 9090}]
endpoints:
- {addresses: [10.0.0.5], conditions: {ready: true}}
- {addresses: [10.0.0.6], conditions: {ready: false, serving: true, terminating: true}}
`

// generation is of workers that are named after a generation. Its Service selects all pods of
// the component, and so does that of the generation before.
const generation = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: chat-decode-abc123-1
  namespace: lab
  labels: {kubernetes.io/service-name: chat-decode-abc123, nvidia.com/dynamo-graph-deployment-name: chat, nvidia.com/dynamo-component: Decode}
addressType: IPv4
ports: [{name: health, port: 9099}, {name: system, port: 9091}]
endpoints:
- {addresses: [10.0.0.5], conditions: {ready: true}}
- {addresses: [10.0.0.6], conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.0.0.7], conditions: {ready: true}}
`

const hosted = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: chat-decode-1, namespace: lab, labels: {kubernetes.io/service-name: chat-decode}}
addressType: IPv4
endpoints:
- {addresses: [10.0.0.5], conditions: {ready: true}, targetRef: {kind: Pod, name: chat-decode-a}}
- {addresses: [10.0.0.5], conditions: {ready: true}, targetRef: {kind: Pod, name: chat-decode-b}}
`

// other is of a graph of the same services.
const other = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: talk-decode-1
  namespace: lab
  labels: {kubernetes.io/service-name: talk-decode, nvidia.com/dynamo-graph-deployment-name: talk, nvidia.com/dynamo-component: Decode}
addressType: IPv4
endpoints:
- {addresses: [10.0.0.9], conditions: {ready: false, serving: true, terminating: true}}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	body, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func cluster(t *testing.T, version schema.GroupVersion, texts ...string) (*Client, *fake.FakeDynamicClient) {
	t.Helper()
	var objects []runtime.Object
	for _, text := range texts {
		o := object(t, text)
		if o.GetKind() == v1alpha1.KindDynamoGraphDeploymentScalingAdapter {
			o.SetAPIVersion(version.String())
		}
		objects = append(objects, o)
	}
	f := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{endpointSlices: "EndpointSliceList"}, objects...)
	return &Client{Objects: f, Namespace: "lab", Version: version}, f
}

func TestGraphsOfBothVersionsAreRead(t *testing.T) {
	for version, text := range map[schema.GroupVersion]string{v1alpha1.SchemeGroupVersion: alpha, v1beta1.SchemeGroupVersion: beta} {
		c, _ := cluster(t, version, text, adapter)
		g, err := c.Graph(t.Context(), "chat")
		if err != nil {
			t.Fatal(err)
		}
		// An adapter's word counts, and a service that says nothing has one replica.
		if diff := cmp.Diff(map[string]int{"Frontend": 1, "Decode": 2, "Prefill": 3}, g.Wanted); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, x := range []struct {
		rule           string
		slices         []string
		placed, ending map[string]int
		workers        []string
	}{
		// Those that are not ready yet have a node, too.
		{"by the names of Services", []string{slice, ending}, map[string]int{"Frontend": 3, "Decode": 1}, map[string]int{"Frontend": 1, "Decode": 1}, []string{"10.0.0.5:9090"}},
		{"of workers that are named after a generation", []string{slice, generation}, map[string]int{"Frontend": 3, "Decode": 2}, map[string]int{"Frontend": 1, "Decode": 1}, []string{"10.0.0.5:9091", "10.0.0.7:9091"}},
		{"each pod once, whichever Services select it", []string{slice, ending, strings.Replace(generation, "9091", "9090", 1)}, map[string]int{"Frontend": 3, "Decode": 2}, map[string]int{"Frontend": 1, "Decode": 1}, []string{"10.0.0.5:9090", "10.0.0.7:9090"}},
		{"pods that share their node's address are several", []string{slice, hosted}, map[string]int{"Frontend": 3, "Decode": 2}, map[string]int{"Frontend": 1}, []string{"10.0.0.5:9090"}},
		{"of this graph alone", []string{slice, other}, map[string]int{"Frontend": 3}, map[string]int{"Frontend": 1}, nil},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c, _ := cluster(t, v1alpha1.SchemeGroupVersion, append([]string{alpha}, x.slices...)...)
			g, err := c.Graph(t.Context(), "chat")
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Places(t.Context(), g.Components)
			if err != nil {
				t.Fatal(err)
			}
			want := Places{Frontends: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:8000"), netip.MustParseAddrPort("10.0.0.2:8000")}, Workers: map[string][]netip.AddrPort{}, Placed: x.placed, Ending: x.ending}
			for _, address := range x.workers {
				want.Workers["Decode"] = append(want.Workers["Decode"], netip.MustParseAddrPort(address))
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFrontendIsAskedWhereItListens(t *testing.T) {
	for rule, x := range map[string]struct {
		ports, args string
		want        uint16
	}{
		"at the port of that name":                        {`[{name: system, port: 9090}, {name: http, port: 8080}]`, "--http-port 8001", 8080},
		"at the only port":                                {`[{name: "", port: 8080}]`, "", 8080},
		"where it is told to, if its Service has another": {`[{name: system, port: 9090}]`, "--http-port 8001", 8001},
		"and where a Service finds no port at all":        {`null`, "--http-port=8001", 8001},
		"else where frontends do":                         {`null`, "", 8000},
	} {
		t.Run(rule, func(t *testing.T) {
			c, _ := cluster(t, v1alpha1.SchemeGroupVersion, strings.Replace(slice, "[{name: http, port: 8000}]", x.ports, 1))
			component := graph.Component{Name: "Frontend", Role: graph.RoleFrontend, Main: &corev1.Container{Args: []string{"python3 -m dynamo.frontend " + x.args}}}
			component.ServiceName = "chat-frontend"
			places, err := c.Places(t.Context(), []graph.Component{component})
			if err != nil || len(places.Frontends) != 2 || places.Frontends[0].Port() != x.want {
				t.Errorf("%v, %v", places.Frontends, err)
			}
		})
	}
}

// patches are what was written, as one line each.
func patches(f *fake.FakeDynamicClient) []string {
	var all []string
	for _, a := range f.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok {
			all = append(all, p.GetResource().Resource+"/"+p.GetName()+"/"+p.GetSubresource()+" "+string(p.GetPatchType())+" "+string(p.GetPatch()))
		}
	}
	return all
}

func TestReplicasAreWrittenWhereTheyAreDecided(t *testing.T) {
	for _, x := range []struct {
		rule    string
		version schema.GroupVersion
		text    string
		want    []string
	}{
		{"an adapter's through its scale, the others in one patch of the graph", v1alpha1.SchemeGroupVersion, alpha, []string{
			`dynamographdeploymentscalingadapters/chat-prefill/scale application/merge-patch+json {"spec":{"replicas":4}}`,
			`dynamographdeployments/chat/ application/merge-patch+json {"metadata":{"annotations":{"nvidia.com/scale-plan":"why"},"resourceVersion":"7"},"spec":{"services":{"Decode":{"replicas":5}}}}`,
		}},
		{"in a list by place and name", v1beta1.SchemeGroupVersion, beta, []string{
			`dynamographdeploymentscalingadapters/chat-prefill/scale application/merge-patch+json {"spec":{"replicas":4}}`,
			`dynamographdeployments/chat/ application/json-patch+json [{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/metadata/annotations","value":{"nvidia.com/scale-plan":"why"}},{"op":"test","path":"/spec/components/1/name","value":"Decode"},{"op":"add","path":"/spec/components/1/replicas","value":5}]`,
		}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c, f := cluster(t, x.version, x.text, adapter)
			g, err := c.Graph(t.Context(), "chat")
			if err != nil {
				t.Fatal(err)
			}
			f.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, object(t, x.text), nil })
			if err := c.Scale(t.Context(), g, map[string]int{"Prefill": 4, "Decode": 5}, "why"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(x.want, patches(f)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPrefillIsWrittenFirst, as the original writes it.
func TestPrefillIsWrittenFirst(t *testing.T) {
	both := strings.Replace(alpha, "subComponentType: decode,", "subComponentType: decode, scalingAdapter: {enabled: true},", 1)
	c, f := cluster(t, v1alpha1.SchemeGroupVersion, both, adapter, strings.NewReplacer("chat-prefill", "chat-decode", "Prefill", "Decode").Replace(adapter))
	g, err := c.Graph(t.Context(), "chat")
	if err != nil {
		t.Fatal(err)
	}
	f.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, object(t, both), nil })
	if err := c.Scale(t.Context(), g, map[string]int{"Prefill": 4, "Decode": 5}, "why"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`dynamographdeploymentscalingadapters/chat-prefill/scale application/merge-patch+json {"spec":{"replicas":4}}`,
		`dynamographdeploymentscalingadapters/chat-decode/scale application/merge-patch+json {"spec":{"replicas":5}}`,
	}
	if diff := cmp.Diff(want, patches(f)[:2]); diff != "" {
		t.Error(diff)
	}
}

func TestTheVersionIsOneThatIsServed(t *testing.T) {
	served := func(versions ...string) *discoveryfake.FakeDiscovery {
		f := &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{}}
		for _, v := range versions {
			f.Resources = append(f.Resources, &metav1.APIResourceList{GroupVersion: "nvidia.com/" + v, APIResources: []metav1.APIResource{{Name: graphs}}})
		}
		return f
	}
	for _, x := range []struct {
		rule   string
		served []string
		want   string
	}{
		{"both: the one that every release has", []string{"v1beta1", "v1alpha1"}, "v1alpha1"},
		{"the later alone", []string{"v1beta1"}, "v1beta1"},
		{"none", nil, ""},
	} {
		got, err := Version(served(x.served...))
		if got.Version != x.want || (err != nil) != (x.want == "") {
			t.Errorf("%s: %v, %v", x.rule, got, err)
		}
	}
}

func TestAPlanIsAnAnnotation(t *testing.T) {
	c, _ := cluster(t, v1alpha1.SchemeGroupVersion, alpha)
	_, body, err := c.patch(&Graph{}, nil, journal.Record{Words: []string{`"quoted" → <here>`}}.Plan())
	var patch struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     *struct{}         `json:"spec"`
	}
	if err != nil || json.Unmarshal(body, &patch) != nil || patch.Spec != nil {
		t.Fatalf("%s, %v", body, err)
	}
	var back journal.Record
	if err := json.Unmarshal([]byte(patch.Metadata.Annotations[v1alpha1.AnnotationScalePlan]), &back); err != nil || back.Words[0] != `"quoted" → <here>` {
		t.Errorf("%+v, %v", back, err)
	}
}

package proxy

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/subnet"
)

// world is what the table below is resolved in: subnet 20, and in namespace llm
//
//	frontend   10.20.192.10, port 80 -> 8000, two ready pods
//	draining   10.20.192.11, port 80 -> 8000, one pod that terminates but still serves, one that does not
//	empty      10.20.192.12, port 80, no endpoints
//	worker     headless, two named pods, of which worker-1 is not ready
//	elsewhere  an ExternalName
//	outside    10.20.192.13, with an endpoint written by hand that is no pod's
//	kubernetes (in default) 10.20.192.1, port 443
func world(t *testing.T) *Resolver {
	t.Helper()
	r := &Resolver{
		Network:   subnet.Network(20),
		APIServer: "127.0.0.1:21000",
		Services:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, serviceIndexers),
		Slices:    cache.NewIndexer(cache.MetaNamespaceKeyFunc, sliceIndexers),
	}
	http80 := corev1.ServicePort{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}
	for _, s := range []*corev1.Service{
		service("llm", "frontend", "10.20.192.10", http80, corev1.ServicePort{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}),
		service("llm", "draining", "10.20.192.11", http80),
		service("llm", "empty", "10.20.192.12", http80),
		service("llm", "outside", "10.20.192.13", http80),
		service("llm", "worker", corev1.ClusterIPNone),
		service("default", "kubernetes", "10.20.192.1", corev1.ServicePort{Name: "https", Port: 443}),
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "llm", Name: "elsewhere"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
		},
	} {
		if err := r.Services.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*discoveryv1.EndpointSlice{
		slice("llm", "frontend", "a", port("http", 8000), pod("10.20.0.2")),
		slice("llm", "frontend", "b", port("http", 8001), pod("10.20.0.3")),
		slice("llm", "draining", "a", port("http", 8000),
			discoveryv1.Endpoint{Addresses: []string{"10.20.0.4"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true)}},
			discoveryv1.Endpoint{Addresses: []string{"10.20.0.5"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}}),
		slice("llm", "worker", "a", port("", 9000),
			discoveryv1.Endpoint{Addresses: []string{"10.20.1.0"}, Hostname: new("worker-0")},
			discoveryv1.Endpoint{Addresses: []string{"10.20.1.1"}, Hostname: new("worker-1"), Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}),
		slice("llm", "outside", "a", port("http", 80), pod("192.0.2.1")),
		slice("default", "kubernetes", "a", port("https", 21000), pod("10.20.0.1")),
	} {
		if err := r.Slices.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestResolve(t *testing.T) {
	frontends := []string{"127.20.0.2:8000", "127.20.0.3:8001"}
	for name, tc := range map[string]struct {
		address string
		want    []string
		refused int
	}{
		"loopback passes": {address: "127.0.0.1:8443", want: []string{"127.0.0.1:8443"}},
		"a pod's address keeps its last bytes and port":   {address: "10.20.191.7:9090", want: []string{"127.20.191.7:9090"}},
		"the API server has an address like a pod's":      {address: "10.20.0.1:6443", want: []string{"127.0.0.1:21000"}},
		"a cluster IP maps to all ready endpoints":        {address: "10.20.192.10:80", want: frontends},
		"service.namespace":                               {address: "frontend.llm:80", want: frontends},
		"service.namespace.svc":                           {address: "frontend.llm.svc:80", want: frontends},
		"the full name":                                   {address: "frontend.llm.svc.cluster.local:80", want: frontends},
		"the full name with the root's dot":               {address: "frontend.llm.svc.cluster.local.:80", want: frontends},
		"names have no case":                              {address: "Frontend.LLM.svc:80", want: frontends},
		"the API server by name":                          {address: "kubernetes.default.svc:443", want: []string{"127.0.0.1:21000"}},
		"terminating pods serve if no other does":         {address: "draining.llm:80", want: []string{"127.20.0.4:8000"}},
		"a headless Service leads to the port asked for":  {address: "worker.llm:1234", want: []string{"127.20.1.0:1234"}},
		"a pod of a headless Service has a name":          {address: "worker-0.worker.llm.svc:9000", want: []string{"127.20.1.0:9000"}},
		"a pod of a headless Service has a short name":    {address: "worker-0.worker.llm:9000", want: []string{"127.20.1.0:9000"}},
		"a short name of no pod is unknown":               {address: "worker-9.worker.llm:9000", refused: http.StatusBadGateway},
		"a pod of a headless Service has a full name":     {address: "worker-0.worker.llm.svc.cluster.local:9000", want: []string{"127.20.1.0:9000"}},
		"the name of a pod that is not ready is unknown":  {address: "worker-1.worker.llm.svc:9000", refused: http.StatusBadGateway},
		"the name of no pod is unknown":                   {address: "worker-9.worker.llm.svc:9000", refused: http.StatusBadGateway},
		"pods behind a cluster IP have no names":          {address: "x.frontend.llm.svc:80", refused: http.StatusBadGateway},
		"a Service answers on its own ports only":         {address: "frontend.llm:8000", refused: http.StatusBadGateway},
		"a UDP port is no way in":                         {address: "frontend.llm:53", refused: http.StatusBadGateway},
		"a Service without endpoints":                     {address: "empty.llm:80", refused: http.StatusBadGateway},
		"a Service that does not exist":                   {address: "ghost.llm:80", refused: http.StatusBadGateway},
		"a cluster IP that nobody has":                    {address: "10.20.250.1:80", refused: http.StatusBadGateway},
		"an endpoint outside the cluster is not followed": {address: "outside.llm:80", refused: http.StatusForbidden},
		"an external name is not followed":                {address: "elsewhere.llm:80", refused: http.StatusForbidden},
		"another cluster's pod":                           {address: "10.21.0.2:80", refused: http.StatusForbidden},
		"another cluster's process":                       {address: "127.21.0.2:80", refused: http.StatusForbidden},
		"the internet by address":                         {address: "192.0.2.1:443", refused: http.StatusForbidden},
		"the internet by name":                            {address: "www.example.com:443", refused: http.StatusForbidden},
		"a single word has no namespace":                  {address: "frontend:80", refused: http.StatusForbidden},
		"IPv6":                                            {address: "[::1]:80", refused: http.StatusForbidden},
		"no port":                                         {address: "frontend.llm", refused: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := world(t).Resolve(tc.address)
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Resolve(%q) (-want +got):\n%s", tc.address, diff)
			}
			if status := statusOf(err); status != tc.refused {
				t.Errorf("Resolve(%q) = %v with status %d, want %d", tc.address, err, status, tc.refused)
			}
		})
	}
}

func TestTrimmedObjectsResolveAlike(t *testing.T) {
	full, slim := world(t), world(t)
	for _, indexer := range []cache.Indexer{slim.Services, slim.Slices} {
		for _, object := range indexer.List() {
			trimmed, err := trim(object)
			if err != nil {
				t.Fatal(err)
			}
			if err := indexer.Update(trimmed); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, address := range []string{"frontend.llm:80", "10.20.192.10:80", "worker-0.worker.llm.svc:9000", "elsewhere.llm:80"} {
		want, wantErr := full.Resolve(address)
		got, gotErr := slim.Resolve(address)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || statusOf(wantErr) != statusOf(gotErr) {
			t.Errorf("Resolve(%q) after trimming: %v, %v; before: %v, %v", address, got, gotErr, want, wantErr)
		}
	}
}

func statusOf(err error) int {
	if err == nil {
		return 0
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Status
	}
	return -1
}

func service(namespace, name, clusterIP string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: clusterIP, Ports: ports},
	}
}

func slice(namespace, service, suffix string, p discoveryv1.EndpointPort, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: service + "-" + suffix,
			Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		Ports:     []discoveryv1.EndpointPort{p},
		Endpoints: endpoints,
	}
}

func port(name string, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: &name, Port: &number}
}

func pod(address string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}}
}

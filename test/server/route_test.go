package server

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
)

// TestARouteLeadsToThePortThatItsComponentServesAndInheritsTheRest: a user gives a
// host; class, domain, certificate and gateway are the operator's, and the port is
// that of the Service behind it.
func TestARouteLeadsToThePortThatItsComponentServesAndInheritsTheRest(t *testing.T) {
	w := newWorld(t)
	w.operate(silent + "ingress: {class: nginx, tlsSecret: wildcard, hostSuffix: example.com, gateway: ops/gateway}\n")
	dgd := w.graph("g", "frontend", "worker", "other")
	for name, s := range dgd.Spec.Services {
		s.ComponentType = map[string]v1alpha1.ComponentType{"frontend": v1alpha1.ComponentTypeFrontend, "worker": v1alpha1.ComponentTypeWorker}[name]
		s.Ingress = &v1alpha1.IngressSpec{Enabled: true, Host: name}
	}
	dgd.Spec.Services["other"].Ingress.IngressControllerClassName = new("") // the gateway is not asked for
	w.create(dgd)
	for name, port := range map[string]int32{"frontend": 8000, "worker": 9090} {
		i := exists(w, &networkingv1.Ingress{}, "g-"+name)
		backend := i.Spec.Rules[0].HTTP.Paths[0].Backend.Service
		got := fmt.Sprint(*i.Spec.IngressClassName, " ", i.Spec.Rules[0].Host, " ", i.Spec.TLS, " ", backend.Name, ":", backend.Port.Number)
		want := fmt.Sprintf("nginx %[1]s.example.com [{[%[1]s.example.com] wildcard}] g-%[1]s:%[2]d", name, port)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Ingress (-want +got):\n%s", diff)
		}
		v := exists(w, &render.VirtualService{}, "g-"+name)
		got = fmt.Sprint(v.Spec.Gateways, " ", v.Spec.Hosts, " ", v.Spec.HTTP[0].Route)
		want = fmt.Sprintf("[ops/gateway] [%[1]s.example.com] [{{g-%[1]s {%[2]d}}}]", name, port)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("VirtualService (-want +got):\n%s", diff)
		}
		service := get(w, &corev1.Service{}, "g-"+name)
		if service.Spec.Ports[0].Port != port {
			t.Errorf("the Service has port %d", service.Spec.Ports[0].Port)
		}
	}
	w.warned("g", "spec.services[other].ingress: has neither ingressControllerClassName")
}

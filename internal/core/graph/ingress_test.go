package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAnIngressInheritsWhatItDoesNotSet(t *testing.T) {
	operator := IngressDefaults{Class: "nginx", TLSSecret: "wildcard", HostSuffix: "example.com", Gateway: "ops/gateway"}
	for rule, c := range map[string]struct {
		spec     string
		defaults IngressDefaults
		want     *Ingress
	}{
		"off is off": {`{host: a}`, operator, nil},
		"a host alone gets all that the operator has": {
			`{enabled: true, host: a}`, operator,
			&Ingress{Host: "a.example.com", Class: "nginx", TLSSecret: "wildcard", Gateway: "ops/gateway"},
		},
		"nothing where the operator has nothing": {`{enabled: true, host: a}`, IngressDefaults{}, &Ingress{Host: "a.local"}},
		"only the gateway where it has no more":  {`{enabled: true, host: a}`, IngressDefaults{Gateway: "g"}, &Ingress{Host: "a.local", Gateway: "g"}},
		"what is set stays": {
			`{enabled: true, host: a, hostPrefix: p-, hostSuffix: s.org, ingressControllerClassName: own, tls: {secretName: t}, useVirtualService: true, virtualServiceGateway: mesh}`, operator,
			&Ingress{Host: "p-a.s.org", Class: "own", TLSSecret: "t", Gateway: "mesh"},
		},
		"a class alone makes no VirtualService": {
			`{enabled: true, host: a, ingressControllerClassName: own}`, operator,
			&Ingress{Host: "a.example.com", Class: "own", TLSSecret: "wildcard"},
		},
		"a VirtualService without a gateway has the operator's": {
			`{enabled: true, host: a, useVirtualService: true}`, operator,
			&Ingress{Host: "a.example.com", TLSSecret: "wildcard", Gateway: "ops/gateway"},
		},
		"annotations go to the operator's class": {
			`{enabled: true, host: a, annotations: {x: z}}`, operator,
			&Ingress{Host: "a.example.com", Class: "nginx", TLSSecret: "wildcard", Annotations: map[string]string{"x": "z"}},
		},
		"empty is set, too": {
			`{enabled: true, host: a, hostSuffix: "", ingressControllerClassName: "", tls: {secretName: ""}, useVirtualService: true, virtualServiceGateway: ""}`, operator,
			&Ingress{Host: "a.local"},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			spec := &v1alpha1.IngressSpec{}
			if err := yaml.UnmarshalStrict([]byte(c.spec), spec); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, ReadIngress(spec, c.defaults)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestWhatAFrontendGetsUnaskedIsReadTheSame: a component carries it in words.
func TestWhatAFrontendGetsUnaskedIsReadTheSame(t *testing.T) {
	for _, d := range []IngressDefaults{
		{Class: "nginx"}, {Gateway: "g"}, {Class: "nginx", TLSSecret: "t", HostSuffix: "example.com", Gateway: "g"},
	} {
		only := &v1alpha1.IngressSpec{Enabled: true, Host: "chat"}
		if diff := cmp.Diff(ReadIngress(only, d), ReadIngress(DefaultIngress("chat", d), d)); diff != "" {
			t.Errorf("%+v: -host alone +unasked\n%s", d, diff)
		}
	}
}

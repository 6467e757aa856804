package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func TestWhatUsersMayBeReachedBy(t *testing.T) {
	listed := IngressRules{
		Hosts: []string{".example.com", "chat.test.local", "*.wild.example.org"}, Classes: []string{"nginx"},
		Gateways: []string{"istio-system/public", "team/own"}, Metadata: []string{"team.example.com/", "app"},
	}
	ours := graph.IngressDefaults{Class: "c", HostSuffix: "s.com", Gateway: "ops/gateway"}
	const nginx, public = `ingressControllerClassName: nginx`, `useVirtualService: true, virtualServiceGateway: istio-system/public`
	for rule, c := range map[string]struct {
		rules      IngressRules
		authorized bool
		ingress    string
		want       []string
	}{
		"an author whom the API server has authorized is free without lists": {ingress: `host: any, hostSuffix: bank.com, annotations: {a: b}, ` + nginx, authorized: true},
		"one whom nobody has authorized gets nothing":                        {ingress: `host: any, annotations: {a: b}, labels: {c: d}, ` + nginx, want: []string{"annotations[a]", "host", "ingressControllerClassName", "labels[c]"}},
		"nor through a gateway":                                              {ingress: `host: any, ` + public, want: []string{"host", "virtualServiceGateway"}},
		"what is off is not judged":                                          {ingress: `enabled: false, host: any, ` + nginx},
		"nor what makes nothing":                                             {ingress: `host: any, useVirtualService: true`},
		"what is listed needs nobody's word":                                 {rules: listed, ingress: `host: a, hostSuffix: example.com, ` + nginx},
		"a list binds those who are authorized, too":                         {rules: listed, ingress: `host: a, hostSuffix: bank.com, ` + nginx, authorized: true, want: []string{"host"}},
		"a suffix begins at a dot":                                           {rules: listed, ingress: `host: evilexample, hostSuffix: com, ` + nginx, want: []string{"host"}},
		"a suffix is not itself":                                             {rules: listed, ingress: `host: example, hostSuffix: com, ` + nginx, want: []string{"host"}},
		"a host is the whole of it":                                          {rules: listed, ingress: `hostPrefix: chat., host: test, ` + nginx},
		"a wildcard is in no suffix":                                         {rules: listed, ingress: `host: "*", hostSuffix: example.com, ` + nginx, want: []string{"host"}},
		"not even by its prefix":                                             {rules: listed, ingress: `hostPrefix: "*.", host: a, hostSuffix: example.com, ` + nginx, want: []string{"host"}},
		"unless it is listed":                                                {rules: listed, ingress: `host: "*", hostSuffix: wild.example.org, ` + nginx},
		"a class that is not listed":                                         {rules: listed, ingress: `host: a, hostSuffix: example.com, ingressControllerClassName: internal`, want: []string{"ingressControllerClassName"}},
		"a gateway that is listed":                                           {rules: listed, ingress: `host: a, hostSuffix: example.com, ` + public},
		"a gateway of the own namespace":                                     {rules: listed, ingress: `host: a, hostSuffix: example.com, useVirtualService: true, virtualServiceGateway: own`},
		"written with a dot":                                                 {rules: listed, ingress: `host: a, hostSuffix: example.com, useVirtualService: true, virtualServiceGateway: ./own`},
		"a gateway of others":                                                {rules: listed, ingress: `host: a, hostSuffix: example.com, useVirtualService: true, virtualServiceGateway: other/own`, want: []string{"virtualServiceGateway"}},
		"the mesh is a gateway of others":                                    {rules: listed, ingress: `host: a, hostSuffix: example.com, useVirtualService: true, virtualServiceGateway: mesh`, want: []string{"virtualServiceGateway"}},
		"annotations and labels by their prefix":                             {rules: listed, ingress: `host: a, hostSuffix: example.com, annotations: {team.example.com/x: y}, labels: {app: z}, ` + nginx},
		"an annotation that speaks to the controller":                        {rules: listed, ingress: `host: a, hostSuffix: example.com, annotations: {nginx.ingress.kubernetes.io/server-snippet: x}, ` + nginx, want: []string{"annotations[nginx.ingress.kubernetes.io/server-snippet]"}},
		"the operator's own default needs nobody's word":                     {rules: IngressRules{Hosts: []string{".other.com"}, Defaults: graph.IngressDefaults{Class: "c", HostSuffix: "s.com"}}, ingress: `host: g, hostSuffix: s.com, ingressControllerClassName: c`},
		"a host alone gets what a graph of that name gets unasked":           {rules: IngressRules{Hosts: []string{".other.com"}, Defaults: ours}, ingress: `host: any`},
		"but not one that no graph can have for a name":                      {rules: IngressRules{Defaults: ours}, ingress: `host: www.bank`, want: []string{"host"}},
		"nor one in another domain, though the class is the operator's":      {rules: IngressRules{Defaults: ours}, ingress: `host: www, hostSuffix: bank.com`, want: []string{"host"}},
		"nor with annotations for the operator's class":                      {rules: IngressRules{Defaults: ours}, ingress: `host: any, annotations: {a: b}`, want: []string{"annotations[a]", "host"}},
		"nor through the operator's gateway":                                 {rules: IngressRules{Defaults: ours}, ingress: `host: any, useVirtualService: true`, want: []string{"host"}},
		"the operator's own class and gateway are on no list":                {rules: IngressRules{Hosts: listed.Hosts, Classes: listed.Classes, Gateways: listed.Gateways, Defaults: ours}, ingress: `host: a, hostSuffix: example.com`},
		"but that of another graph is another's":                             {rules: IngressRules{Defaults: graph.IngressDefaults{Class: "c", HostSuffix: "s.com"}}, ingress: `host: other, hostSuffix: s.com, ingressControllerClassName: c`, want: []string{"host", "ingressControllerClassName"}},
	} {
		t.Run(rule, func(t *testing.T) {
			spec := &v1alpha1.IngressSpec{Enabled: true}
			if err := yaml.UnmarshalStrict([]byte(`{`+c.ingress+`}`), spec); err != nil {
				t.Fatal(err)
			}
			dgd := &v1alpha1.DynamoGraphDeployment{}
			dgd.Namespace, dgd.Name = "team", "g"
			dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"web": {Ingress: spec}, "none": nil, "closed": {}}
			dcd := &v1alpha1.DynamoComponentDeployment{}
			dcd.Namespace, dcd.Name = "team", "g-web"
			dcd.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: "g"}}
			dcd.Spec.Ingress = spec
			var want, wantOfComponent []string
			for _, path := range c.want {
				want, wantOfComponent = append(want, "spec.services[web].ingress."+path), append(wantOfComponent, "spec.ingress."+path)
			}
			var got, gotOfComponent []string
			for _, e := range GraphIngress(dgd, c.rules, c.authorized) {
				got = append(got, e.Field)
			}
			for _, e := range ComponentIngress(dcd, c.rules, c.authorized) {
				gotOfComponent = append(gotOfComponent, e.Field)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("graph (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantOfComponent, gotOfComponent); diff != "" {
				t.Errorf("component (-want +got):\n%s", diff)
			}
		})
	}
}

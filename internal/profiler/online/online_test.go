package online

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestTrialNameIsAShortLabel(t *testing.T) {
	for name, request := range map[string]string{
		"a short name":      "chat",
		"a name with dots":  "chat.v1.prod",
		"a name of 253":     strings.Repeat("a", 253),
		"a dash at the cut": strings.Repeat("b", 23) + "-" + strings.Repeat("c", 20),
	} {
		t.Run(name, func(t *testing.T) {
			got := TrialName(request, "agg-tp1")
			if problems := validation.IsDNS1123Label(got); len(problems) > 0 || len(got) > 36 {
				t.Errorf("%s: %v", got, problems)
			}
			if got != TrialName(request, "agg-tp1") {
				t.Error("another name the second time")
			}
			if got == TrialName(request, "agg-tp2") || got == TrialName(request+"x", "agg-tp1") {
				t.Error("two candidates share a name")
			}
		})
	}
}

func TestTheFrontendIsAskedAtItsService(t *testing.T) {
	g := &v1alpha1.DynamoGraphDeployment{}
	g.Name = "chat-try-1"
	g.Spec.Services = map[string]*v1alpha1.SharedSpec{
		"Web":    {ComponentType: v1alpha1.ComponentTypeFrontend},
		"decode": {ComponentType: v1alpha1.ComponentTypeWorker},
	}
	for name, test := range map[string]struct{ service, want string }{
		"by the graph's own name": {"", "http://chat-try-1-web.ns.svc:8000"},
		"by the name given":       {"gate", "http://gate.ns.svc:8000"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Runner{Namespace: "ns", Service: test.service}).url(g); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

package requestplan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// The operator writes a request's graph, so the API server cannot tell whether
// whoever asked may be reached by what it names.
func TestARequestsGraphIsReachedOnlyByWhatIsListed(t *testing.T) {
	routed := func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		found(r)
		text := strings.TrimSuffix(string(r.Status.GeneratedDeployment.Raw), "}") +
			`,"spec":{"services":{"web":{"ingress":{"enabled":true,"host":"www","hostSuffix":"bank.com","useVirtualService":true,"virtualServiceGateway":"istio-system/public"}}}}}`
		r.Status.GeneratedDeployment = &runtime.RawExtension{Raw: []byte(text)}
	}
	listed := policy
	listed.Scope.Ingress = validation.IngressRules{Hosts: []string{".bank.com"}, Gateways: []string{"istio-system/public"}}
	for rule, c := range map[string]struct {
		policy Policy
		want   string
	}{
		"nothing is listed": {policy, "Failed"},
		"it is listed":      {listed, "Deploying wants graph"},
	} {
		t.Run(rule, func(t *testing.T) {
			got, _, _ := strings.Cut(told(Next(at("Deploying", routed), Sight{Record: record()}, c.policy, noon)), "\n")
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	step := Next(at("Deploying", routed), Sight{Record: record()}, policy, noon)
	if f, said := step.Finding(v1alpha1.ConditionDeploymentReady); !said || f.Reason != v1alpha1.ReasonIngressNotAllowed || !strings.Contains(f.Message, "spec.services[web].ingress.host") {
		t.Errorf("says %+v", f)
	}
}

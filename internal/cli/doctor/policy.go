package doctor

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// without says what is refused, or open, where a policy is not enforced.
var without = map[config.Policy]string{
	config.PolicyNamespaceScope:   "whoever may write Leases in a namespace can keep the operator out of it",
	config.PolicyRequestNamespace: "requests for other namespaces are not checked",
	config.PolicyGraphIngress:     "Ingresses and VirtualServices that users ask for are made only where ingress.allowed* of the configuration lists them",
	config.PolicyComponentIngress: "Ingresses and VirtualServices that users ask for are made only where ingress.allowed* of the configuration lists them",
	config.PolicyScalingAdapter:   "whoever may make scaling adapters can pose as the operator's",
	config.PolicyWorkerMetadata:   "a pod can publish worker metadata in the name of another",
}

const installPolicies = "kubectl apply --server-side -k config/tenancy, or install the chart for the whole cluster (helm upgrade --install ... charts/platform)"

// policies looks for the ValidatingAdmissionPolicies of an installation for the
// cluster. They are told by their label, since releases name them.
func policies(ctx context.Context, p target) ([]finding, error) {
	var list admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := p.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/name": "dynamo-operator"}); err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	// An operator for one namespace can do without: it makes only what its
	// configuration lists.
	verdict, err := p.policiesMissing(ctx)
	if err != nil {
		return nil, err
	}
	var findings []finding
	for _, policy := range config.Policies {
		f, err := p.enforced(ctx, policy, list.Items)
		if err != nil {
			return nil, err
		}
		if f.verdict != fine {
			f.verdict = verdict
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 {
		findings = append(findings, finding{what: fmt.Sprintf("%d policies are enforced", len(config.Policies))})
	}
	return findings, nil
}

// policiesMissing is how bad it is if a policy is not there.
func (p target) policiesMissing(ctx context.Context) (verdict, error) {
	deployments, err := Operators(ctx, p)
	if err != nil {
		return wrong, err
	}
	for i := range deployments {
		held, err := p.held(ctx, accountOf(deployments[i]))
		if err != nil || held.cluster {
			return wrong, err
		}
	}
	if len(deployments) == 0 {
		return wrong, nil
	}
	return note, nil
}

// enforced judges one policy: of several releases that bring it, one suffices.
func (p target) enforced(ctx context.Context, policy config.Policy, installed []admissionregistrationv1.ValidatingAdmissionPolicy) (finding, error) {
	missing := finding{verdict: wrong, what: fmt.Sprintf("no policy %s is installed: %s", policy, without[policy]), todo: installPolicies}
	for i := range installed {
		name := installed[i].Name
		if !strings.HasSuffix(name, "-"+string(policy)) {
			continue
		}
		states, err := observe.Policies(ctx, p, name)
		if err != nil {
			return missing, err
		}
		if states[0].InForce() {
			return finding{what: "policy " + name + " is enforced"}, nil
		}
		missing.what = fmt.Sprintf("policy %s is not enforced (%s): %s", name, strings.Join(states[0].Problems, "; "), without[policy])
	}
	return missing, nil
}

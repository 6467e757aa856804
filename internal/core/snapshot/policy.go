package snapshot

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyState is whether an admission policy of ours is in force.
type PolicyState struct {
	Name string
	// Problems say what is missing or weakened; none means that it is in force.
	Problems []string
}

// InForce reports whether the policy holds for everybody.
func (s PolicyState) InForce() bool { return len(s.Problems) == 0 }

// JudgePolicy looks at a policy and its binding, nil where there is none. It finds
// what switches a policy off or narrows it; whether its expressions are the ones
// that were shipped is for whoever may change them.
func JudgePolicy(name string, policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) PolicyState {
	s := PolicyState{Name: name}
	say := func(format string, args ...any) { s.Problems = append(s.Problems, fmt.Sprintf(format, args...)) }
	if policy == nil {
		say("ValidatingAdmissionPolicy %s does not exist", name)
	} else {
		if policy.Spec.FailurePolicy != nil && *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
			say("failurePolicy of ValidatingAdmissionPolicy %s is %s, not Fail", name, *policy.Spec.FailurePolicy)
		}
		if len(policy.Spec.Validations) == 0 {
			say("ValidatingAdmissionPolicy %s has no validations", name)
		}
		if narrowed(policy.Spec.MatchConstraints) {
			say("matchConstraints of ValidatingAdmissionPolicy %s leave objects out", name)
		}
	}
	switch {
	case binding == nil:
		say("ValidatingAdmissionPolicyBinding %s does not exist", name)
		return s
	case binding.Spec.PolicyName != name:
		say("ValidatingAdmissionPolicyBinding %s binds %s", name, binding.Spec.PolicyName)
	}
	if !slices.Contains(binding.Spec.ValidationActions, admissionregistrationv1.Deny) {
		say("validationActions of ValidatingAdmissionPolicyBinding %s lack Deny", name)
	}
	if m := binding.Spec.MatchResources; narrowed(m) || m != nil && len(m.ResourceRules) > 0 {
		say("matchResources of ValidatingAdmissionPolicyBinding %s leave objects out", name)
	}
	return s
}

func narrowed(m *admissionregistrationv1.MatchResources) bool {
	return m != nil && (selective(m.NamespaceSelector) || selective(m.ObjectSelector) || len(m.ExcludeResourceRules) > 0)
}

func selective(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAPolicyIsInForceOnlyIfNothingWeakensIt(t *testing.T) {
	policy := func(change func(*admissionregistrationv1.ValidatingAdmissionPolicySpec)) *admissionregistrationv1.ValidatingAdmissionPolicy {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{}},
			Validations:      []admissionregistrationv1.Validation{{Expression: "true"}},
		}}
		change(&p.Spec)
		return p
	}
	binding := func(change func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec)) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
		b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "p", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit, admissionregistrationv1.Deny},
		}}
		change(&b.Spec)
		return b
	}
	same := func(*admissionregistrationv1.ValidatingAdmissionPolicySpec) {}
	bound := func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {}
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, test := range map[string]struct {
		policy  *admissionregistrationv1.ValidatingAdmissionPolicy
		binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
		want    []string
	}{
		"as it is shipped": {policy(same), binding(bound), nil},
		"neither is there": {nil, nil, []string{"ValidatingAdmissionPolicy p does not exist", "ValidatingAdmissionPolicyBinding p does not exist"}},
		"not bound":        {policy(same), nil, []string{"ValidatingAdmissionPolicyBinding p does not exist"}},
		"fails open": {
			policy(func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
				s.FailurePolicy = new(admissionregistrationv1.Ignore)
			}), binding(bound),
			[]string{"failurePolicy of ValidatingAdmissionPolicy p is Ignore, not Fail"},
		},
		"judges nothing": {
			policy(func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) { s.Validations = nil }), binding(bound),
			[]string{"ValidatingAdmissionPolicy p has no validations"},
		},
		"judges some namespaces": {
			policy(func(s *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
				s.MatchConstraints.NamespaceSelector = some
			}), binding(bound),
			[]string{"matchConstraints of ValidatingAdmissionPolicy p leave objects out"},
		},
		"binds something else": {
			policy(same), binding(func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) { s.PolicyName = "q" }),
			[]string{"ValidatingAdmissionPolicyBinding p binds q"},
		},
		"only warns": {
			policy(same), binding(func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
				s.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
			}),
			[]string{"validationActions of ValidatingAdmissionPolicyBinding p lack Deny"},
		},
		"is bound to some objects": {
			policy(same), binding(func(s *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
				s.MatchResources = &admissionregistrationv1.MatchResources{ObjectSelector: some}
			}),
			[]string{"matchResources of ValidatingAdmissionPolicyBinding p leave objects out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := JudgePolicy("p", test.policy, test.binding)
			if diff := cmp.Diff(test.want, got.Problems); diff != "" {
				t.Error(diff)
			}
			if got.InForce() != (test.want == nil) {
				t.Errorf("in force: %v", got.InForce())
			}
		})
	}
}

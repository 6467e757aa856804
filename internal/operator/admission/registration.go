package admission

import (
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Registration is what the API server is to know of the server.
type Registration struct {
	// Name of the ValidatingWebhookConfiguration.
	Name string
	// Service leads to the replicas.
	Service types.NamespacedName
	// URL is asked instead of the Service by an API server that is not in its
	// network; only of use to developers.
	URL string
	// Namespace restricts the webhooks to one namespace; empty means all but
	// those in Except.
	Namespace string
	// Except are namespaces that must never depend on us: the system's, and the
	// operator's own, which could otherwise not be mended.
	Except         []string
	FailurePolicy  admissionregistrationv1.FailurePolicyType
	TimeoutSeconds int32
	// Operator is the user that the operator itself is: its own writes need not
	// wait for it.
	Operator string
	// Owners take the registration with them when they go: an operator that is
	// removed together with its rights cannot remove it any more.
	Owners []metav1.OwnerReference
	// InjectFrom is a Certificate of cert-manager, namespace/name. cert-manager
	// writes its authority, which is the Secret's, from then on; until it does,
	// ours is there, so that the webhooks are verified from the first moment.
	InjectFrom string
}

// Configuration is the registration as an object.
func (r Registration) Configuration(trusted []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: map[string]string{"app.kubernetes.io/name": "dynamo-operator"}, OwnerReferences: r.Owners},
	}
	if r.InjectFrom != "" {
		c.Annotations = map[string]string{"cert-manager.io/inject-ca-from": r.InjectFrom}
	}
	for _, kind := range Kinds {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:         "v" + kind.Path()[len("/validate-nvidia-com-v1alpha1-"):] + ".kb.io",
			ClientConfig: r.client(kind, trusted),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{v1alpha1.GroupName}, APIVersions: []string{v1alpha1.SchemeGroupVersion.Version},
					Resources: []string{kind.Resource}, Scope: new(admissionregistrationv1.NamespacedScope),
				},
			}},
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			FailurePolicy:           new(r.FailurePolicy),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(r.TimeoutSeconds),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       r.selector(),
			ObjectSelector:          &metav1.LabelSelector{},
			MatchConditions:         r.conditions(),
		})
	}
	return c
}

func (r Registration) client(kind Kind, trusted []byte) admissionregistrationv1.WebhookClientConfig {
	if r.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: new(r.URL + kind.Path()), CABundle: trusted}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: trusted, Service: &admissionregistrationv1.ServiceReference{
		Namespace: r.Service.Namespace, Name: r.Service.Name, Path: new(kind.Path()), Port: new(int32(443)),
	}}
}

func (r Registration) selector() *metav1.LabelSelector {
	requirement := metav1.LabelSelectorRequirement{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: r.Except}
	if r.Namespace != "" {
		requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, []string{r.Namespace}
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
}

// conditions are what API servers see for themselves: objects on their way out
// go, whether or not anybody is there to be asked.
func (r Registration) conditions() []admissionregistrationv1.MatchCondition {
	conditions := []admissionregistrationv1.MatchCondition{
		{Name: "not-on-its-way-out", Expression: "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp)"},
	}
	if r.Operator != "" {
		conditions = append(conditions, admissionregistrationv1.MatchCondition{
			Name: "not-the-operator", Expression: "request.userInfo.username != " + strconv.Quote(r.Operator),
		})
	}
	return conditions
}

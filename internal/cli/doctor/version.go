package doctor

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
)

// versions looks at whether v1beta1 is served, and whether somebody converts
// where it is.
func versions(ctx context.Context, p target) ([]finding, error) {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, name := range definition.Converted {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := p.Get(ctx, types.NamespacedName{Name: name}, crd)
		if apierrors.IsNotFound(err) {
			return nil, nil // told before
		}
		if err != nil {
			return nil, fmt.Errorf("read definition %s: %w", name, err)
		}
		all = append(all, crd)
	}
	findings, of := judged(all)
	if of == nil {
		return findings, nil
	}
	to := admissionregistrationv1.WebhookClientConfig{CABundle: of.CABundle, URL: of.URL}
	if of.Service != nil {
		to.Service = &admissionregistrationv1.ServiceReference{Namespace: of.Service.Namespace, Name: of.Service.Name}
	}
	f, err := served(ctx, p, "", to)
	if err != nil {
		return nil, err
	}
	f.what = strings.Replace(f.what, "webhooks of ", v1beta1.SchemeGroupVersion.String()+" is served and converted", 1)
	if f.verdict == wrong {
		f.what += "; reads of it fail, and with them the garbage collector and the deletion of namespaces"
		f.todo = "bring back what converts, the operator or dynamo-operator-converter; or have v1beta1 frozen, as docs/guide/versions.md says"
	}
	return append(findings, f), nil
}

// judged tells what the definitions say by themselves, and how what is served is
// converted.
func judged(all []*apiextensionsv1.CustomResourceDefinition) ([]finding, *apiextensionsv1.WebhookClientConfig) {
	var findings []finding
	var without, stored []string
	var by *apiextensionsv1.WebhookClientConfig
	for _, crd := range all {
		if definition.StoredAsBeta(crd) {
			stored = append(stored, crd.Name)
		}
		if !definition.Served(crd) {
			without = append(without, crd.Name)
			continue
		}
		by = &apiextensionsv1.WebhookClientConfig{}
		if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			by = c.Webhook.ClientConfig
		}
	}
	if len(stored) > 0 {
		findings = append(findings, finding{verdict: note, what: fmt.Sprintf("objects of %s may be stored as v1beta1, and are read through the converter alone", strings.Join(stored, ", ")), todo: "the operator stores them anew while it converts; see its log if this stays"})
	}
	switch {
	case len(without) == len(all):
		findings = append(findings, finding{verdict: note, what: v1beta1.SchemeGroupVersion.String() + " is not served", todo: "that is so with api.v1beta1.enabled: false, and where only operators for single namespaces are installed (docs/guide/versions.md); otherwise kubectl get events -n default --field-selector reason=VersionNotServed"})
	case len(without) > 0:
		findings = append(findings, finding{verdict: wrong, what: fmt.Sprintf("%s is not served of %s", v1beta1.SchemeGroupVersion, strings.Join(without, ", ")), todo: "kubectl get events -n default --field-selector reason=VersionNotServed"})
	}
	return findings, by
}

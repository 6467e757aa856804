// Package definition decides about the CustomResourceDefinitions of kinds that
// have two versions: where their objects are converted, whether v1beta1 is
// served, and what an installation must leave as it is. It reads and writes
// nothing: what is to change comes back as a JSON patch.
package definition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// Adapters is the definition that v1beta1 is served of first: few read it, and
// nothing goes on without it.
const Adapters = "dynamographdeploymentscalingadapters.nvidia.com"

// Converted are the definitions of the kinds that have two versions.
var Converted = []string{
	Adapters,
	"dynamocomponentdeployments.nvidia.com",
	"dynamographdeploymentrequests.nvidia.com",
	"dynamographdeployments.nvidia.com",
}

// InjectAnnotation has cert-manager write the authority of a Certificate,
// namespace/name, into the object that carries it.
const InjectAnnotation = "cert-manager.io/inject-ca-from"

// Converter is where API servers have objects converted.
type Converter struct {
	Service types.NamespacedName
	// URL is asked instead of the Service by an API server that is not in its
	// network; only of use to developers.
	URL string
	// Path below both.
	Path string
	// Trusted are the authorities, in PEM, that the converter's certificate is
	// verified by. There is no converter without.
	Trusted []byte
	// InjectFrom is a Certificate of cert-manager, namespace/name, which keeps
	// Trusted from the first time that they were written.
	InjectFrom string
}

func (c Converter) conversion() *apiextensionsv1.CustomResourceConversion {
	to := &apiextensionsv1.WebhookClientConfig{CABundle: c.Trusted}
	if c.URL != "" {
		to.URL = new(c.URL + c.Path)
	} else {
		to.Service = &apiextensionsv1.ServiceReference{Namespace: c.Service.Namespace, Name: c.Service.Name, Path: new(c.Path), Port: new(int32(443))}
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: to, ConversionReviewVersions: []string{"v1"}},
	}
}

// client is how a definition reaches its converter; nil if it has none.
func client(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil {
		return nil
	}
	return c.Webhook.ClientConfig
}

// HasConverter reports whether a definition has its objects converted by somebody.
func HasConverter(crd *apiextensionsv1.CustomResourceDefinition) bool { return client(crd) != nil }

// LeadsTo reports whether the definition has its objects converted there, by
// whatever authorities.
func (c Converter) LeadsTo(crd *apiextensionsv1.CustomResourceDefinition) bool {
	to := client(crd)
	switch {
	case to == nil:
		return false
	case c.URL != "":
		return to.URL != nil && *to.URL == c.URL+c.Path
	default:
		return to.Service != nil && to.Service.Namespace == c.Service.Namespace && to.Service.Name == c.Service.Name &&
			to.Service.Path != nil && *to.Service.Path == c.Path
	}
}

// Connect has a definition's objects converted there. Without authorities
// nothing is changed: a converter that cannot be verified fails each request.
func (c Converter) Connect(crd *apiextensionsv1.CustomResourceDefinition) (Patch, error) {
	if len(bytes.TrimSpace(c.Trusted)) == 0 {
		return nil, fmt.Errorf("definition %s: no certificate authority to verify the converter by", crd.Name)
	}
	injected := c.InjectFrom != "" && crd.Annotations[InjectAnnotation] == c.InjectFrom
	if c.LeadsTo(crd) {
		to := client(crd)
		if bytes.Equal(to.CABundle, c.Trusted) && (c.InjectFrom == "" || injected) || injected && len(to.CABundle) > 0 {
			return nil, nil
		}
	}
	patch := Patch{{Op: "add", Path: "/spec/conversion", Value: c.conversion()}}
	switch {
	case c.InjectFrom == "" || injected:
	case len(crd.Annotations) == 0:
		patch = append(patch, operation{Op: "add", Path: "/metadata/annotations", Value: map[string]string{InjectAnnotation: c.InjectFrom}})
	default:
		patch = append(patch, operation{Op: "add", Path: "/metadata/annotations/cert-manager.io~1inject-ca-from", Value: c.InjectFrom})
	}
	return patch.of(crd), nil
}

// Patch is a JSON patch of a definition.
type Patch []operation

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// of binds a patch to what was seen: positions in a list mean nothing otherwise.
func (p Patch) of(crd *apiextensionsv1.CustomResourceDefinition) Patch {
	return append(Patch{{Op: "test", Path: "/metadata/resourceVersion", Value: crd.ResourceVersion}}, p...)
}

// JSON is the patch as it is sent.
func (p Patch) JSON() ([]byte, error) { return json.Marshal(p) }

func version(crd *apiextensionsv1.CustomResourceDefinition, name string) int {
	return slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
}

// HasBeta reports whether a definition knows v1beta1.
func HasBeta(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return version(crd, v1beta1.SchemeGroupVersion.Version) >= 0
}

// Served reports whether v1beta1 is served as such, and not frozen.
func Served(crd *apiextensionsv1.CustomResourceDefinition) bool {
	at := version(crd, v1beta1.SchemeGroupVersion.Version)
	return at >= 0 && crd.Spec.Versions[at].Served && !Frozen(crd)
}

// Frozen reports whether v1beta1 is served for the garbage collector alone.
func Frozen(crd *apiextensionsv1.CustomResourceDefinition) bool {
	at := version(crd, v1beta1.SchemeGroupVersion.Version)
	return at >= 0 && crd.Spec.Versions[at].Deprecated // no release says so
}

// Serve has v1beta1 served as it is shipped. It is not served of a definition that
// has nothing converted: the API server would relabel objects and drop their fields.
func Serve(crd, shipped *apiextensionsv1.CustomResourceDefinition) Patch {
	at, from := version(crd, v1beta1.SchemeGroupVersion.Version), version(shipped, v1beta1.SchemeGroupVersion.Version)
	to := client(crd)
	switch {
	case at < 0 || from < 0 || Served(crd) || to == nil || len(to.CABundle) == 0:
		return nil
	case Frozen(crd):
		whole := *shipped.Spec.Versions[from].DeepCopy()
		whole.Served = true
		return Patch{{Op: "replace", Path: fmt.Sprintf("/spec/versions/%d", at), Value: whole}}.of(crd)
	}
	return Patch{{Op: "replace", Path: fmt.Sprintf("/spec/versions/%d/served", at), Value: true}}.of(crd)
}

// Suspend has v1beta1 not served, until conversions work again.
func Suspend(crd *apiextensionsv1.CustomResourceDefinition) Patch {
	if !Served(crd) {
		return nil
	}
	at := version(crd, v1beta1.SchemeGroupVersion.Version)
	return Patch{{Op: "replace", Path: fmt.Sprintf("/spec/versions/%d/served", at), Value: false}}.of(crd)
}

// Withdraw is what a definition needs when its converter goes for good: nothing is
// asked for a conversion, and v1beta1 is frozen if it was served. Where objects are
// stored as v1beta1 it is not served, and the definition goes on leading to the
// converter: they could not be read without.
func Withdraw(crd *apiextensionsv1.CustomResourceDefinition) Patch {
	if StoredAsBeta(crd) {
		return Suspend(crd)
	}
	var patch Patch
	if Served(crd) {
		at := version(crd, v1beta1.SchemeGroupVersion.Version)
		patch = append(patch, operation{Op: "replace", Path: fmt.Sprintf("/spec/versions/%d", at), Value: frozen(crd.Spec.Versions[at])})
	}
	if client(crd) != nil {
		patch = append(patch, operation{Op: "add", Path: "/spec/conversion", Value: apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}})
		if crd.Annotations[InjectAnnotation] != "" {
			patch = append(patch, operation{Op: "remove", Path: "/metadata/annotations/cert-manager.io~1inject-ca-from"})
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch.of(crd)
}

// frozen is a version that shows objects as they are stored, drops none of their
// fields and lets nothing but their metadata be changed.
//
// The garbage collector needs it. It reads by the preferred version, remembers each
// object by the version that it first saw it in, and would never delete one whose
// version is served no longer, until kube-controller-manager is restarted.
func frozen(v apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceDefinitionVersion {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: v.Name, Served: true, Deprecated: true, Subresources: v.Subresources,
		DeprecationWarning: new(fmt.Sprintf("nothing converts to %s here: objects are shown as %s, and cannot be changed but as that", v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion)),
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
			XValidations: apiextensionsv1.ValidationRules{{
				Rule:            "oldSelf.hasValue() && has(self.spec) == has(oldSelf.value().spec) && (!has(self.spec) || self.spec == oldSelf.value().spec)",
				OptionalOldSelf: new(true),
				Message:         fmt.Sprintf("nothing converts from %s here: write %s", v1beta1.SchemeGroupVersion, v1alpha1.SchemeGroupVersion),
			}},
		}},
	}
}

// StoredAsBeta reports whether objects may be stored as v1beta1.
func StoredAsBeta(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.Contains(crd.Status.StoredVersions, v1beta1.SchemeGroupVersion.Version)
}

// StoresAlpha reports whether what is written now is stored as v1alpha1.
func StoresAlpha(crd *apiextensionsv1.CustomResourceDefinition) bool {
	at := version(crd, v1alpha1.SchemeGroupVersion.Version)
	return at >= 0 && crd.Spec.Versions[at].Storage
}

// Keep takes over into a definition that is about to be applied what the
// operator has decided about the one that is there: v1beta1 stays served while
// the live definition has its objects converted by somebody who can be verified,
// and frozen until then.
func Keep(shipped, live *apiextensionsv1.CustomResourceDefinition) {
	at := version(shipped, v1beta1.SchemeGroupVersion.Version)
	switch to := client(live); {
	case at < 0:
	case Frozen(live):
		shipped.Spec.Versions[at] = *live.Spec.Versions[version(live, v1beta1.SchemeGroupVersion.Version)].DeepCopy()
	case Served(live) && to != nil && len(to.CABundle) > 0:
		shipped.Spec.Versions[at].Served = true
	}
}

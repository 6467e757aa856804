package graph

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Ingress is how a component is reached from outside the cluster.
type Ingress struct {
	Host string
	// Class is the ingress controller's; without it there is no Ingress.
	Class string
	// TLSSecret holds the host's certificate.
	TLSSecret string
	// Gateway is the Istio gateway; without it there is no VirtualService.
	Gateway     string
	Labels      map[string]string
	Annotations map[string]string
}

// IngressDefaults are the operator's settings for components that say nothing,
// or not everything, about how they are reached.
type IngressDefaults struct {
	Class, TLSSecret, HostSuffix, Gateway string
}

// DefaultIngress is what a frontend gets that does not mention ingress: it is
// written into its component, where a reader can see it.
func DefaultIngress(graph string, d IngressDefaults) *v1alpha1.IngressSpec {
	i := &v1alpha1.IngressSpec{
		Enabled:           d.Class != "" || d.Gateway != "",
		Host:              graph,
		UseVirtualService: d.Gateway != "",
	}
	set := func(field **string, value string) {
		if value != "" {
			*field = &value
		}
	}
	set(&i.HostSuffix, d.HostSuffix)
	set(&i.IngressControllerClassName, d.Class)
	set(&i.VirtualServiceGateway, d.Gateway)
	if d.TLSSecret != "" {
		i.TLS = &v1alpha1.IngressTLS{SecretName: d.TLSSecret}
	}
	return i
}

// ReadIngress is nil for a component that is not reached from outside. What the
// user does not set is the operator's; an empty value is set. By which of the two
// kinds a component is reached goes by what is named:
//
//	nothing but a host      as a frontend that says nothing: what the operator has
//	useVirtualService       a VirtualService, and an Ingress if a class is given
//	anything else           an Ingress
func ReadIngress(i *v1alpha1.IngressSpec, d IngressDefaults) *Ingress {
	if i == nil || !i.Enabled {
		return nil
	}
	read := &Ingress{
		Host:        deref(i.HostPrefix, "") + i.Host + "." + cmp.Or(deref(i.HostSuffix, d.HostSuffix), "local"),
		TLSSecret:   d.TLSSecret,
		Labels:      i.Labels,
		Annotations: i.Annotations,
	}
	if i.TLS != nil {
		read.TLSSecret = i.TLS.SecretName
	}
	if i.UseVirtualService {
		read.Class = deref(i.IngressControllerClassName, "")
	} else {
		read.Class = deref(i.IngressControllerClassName, d.Class)
	}
	if i.UseVirtualService || OnlyHost(i) {
		read.Gateway = deref(i.VirtualServiceGateway, d.Gateway)
	}
	return read
}

// OnlyHost reports whether an ingress gives nothing but a host that is the name
// that a graph could have. A graph of that name whose frontend says nothing is
// reached in the same way.
func OnlyHost(i *v1alpha1.IngressSpec) bool {
	return len(validation.IsDNS1123Label(i.Host)) == 0 &&
		equality.Semantic.DeepEqual(i, &v1alpha1.IngressSpec{Enabled: i.Enabled, Host: i.Host})
}

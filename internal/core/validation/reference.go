package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// reference checks the name of an object of the same namespace. There is no way
// to name one of another: a slash is not part of a name.
func reference(name string, at *field.Path) field.ErrorList {
	return invalid(at, name, "", validation.IsDNS1123Subdomain(name))
}

// references checks what a service names beside its claims.
func references(s *v1alpha1.SharedSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.EnvFromSecret != nil && *s.EnvFromSecret != "" {
		errs = append(errs, reference(*s.EnvFromSecret, at.Child("envFromSecret"))...)
	}
	errs = append(errs, invalid(at.Child("serviceName"), s.ServiceName, "as a label ", validation.IsValidLabelValue(s.ServiceName))...)
	if m := s.SharedMemory; m != nil && m.Size != nil && m.Size.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("sharedMemory", "size"), m.Size.String(), "must not be negative"))
	}
	return errs
}

// ingress checks what becomes an Ingress or a VirtualService.
func ingress(i *v1alpha1.IngressSpec, at *field.Path) field.ErrorList {
	if i == nil || !i.Enabled {
		return nil
	}
	errs := metavalidation.ValidateLabels(i.Labels, at.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(i.Annotations, at.Child("annotations"))...)
	if i.TLS != nil && i.TLS.SecretName != "" {
		errs = append(errs, reference(i.TLS.SecretName, at.Child("tls", "secretName"))...)
	}
	if i.Host == "" {
		return append(errs, field.Required(at.Child("host"), "an enabled ingress needs it"))
	}
	host := i.Host
	if i.HostPrefix != nil {
		host = *i.HostPrefix + host
	}
	if i.HostSuffix != nil && *i.HostSuffix != "" {
		host += "." + *i.HostSuffix
	}
	return append(errs, invalid(at.Child("host"), host, "", validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*.")))...)
}

// resourceName checks the name of a resource of a node; empty means the default.
func resourceName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	return invalid(at, name, "", validation.IsQualifiedName(name))
}

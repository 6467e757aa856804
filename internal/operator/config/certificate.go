package config

import (
	"encoding/pem"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CertificateMode is who keeps the webhook's certificate.
type CertificateMode string

const (
	// CertificateSelf is the operator itself.
	CertificateSelf CertificateMode = "self"
	// CertificateManager is cert-manager, which also has it trusted.
	CertificateManager CertificateMode = "cert-manager"
	// CertificateExternal is somebody else, who writes the Secret.
	CertificateExternal CertificateMode = "external"
)

// Certificate is about the certificate of webhooks and metrics.
type Certificate struct {
	Mode CertificateMode `json:"mode,omitempty"`
	// Secret holds it: tls.crt, tls.key and, for those who have to trust it,
	// ca.crt.
	Secret string `json:"secret,omitempty"`
	// Validity is how long a certificate serves, AuthorityValidity how long what
	// signs it does. Both are renewed after two thirds of it.
	Validity          metav1.Duration `json:"validity,omitzero"`
	AuthorityValidity metav1.Duration `json:"authorityValidity,omitzero"`
	// CertManagerCertificate is the Certificate whose authority cert-manager
	// writes into the registration: namespace/name.
	CertManagerCertificate string `json:"certManagerCertificate,omitempty"`
	// CABundle are authorities in PEM, for a Secret of somebody else that has no
	// ca.crt.
	CABundle string `json:"caBundle,omitempty"`
	// ClusterDomain is added to the names that the certificate is for.
	ClusterDomain string `json:"clusterDomain,omitempty"`
}

func (c Certificate) validate(at *field.Path) field.ErrorList {
	errs := oneOf(at.Child("mode"), c.Mode, CertificateSelf, CertificateManager, CertificateExternal)
	if c.Secret == "" {
		errs = append(errs, field.Required(at.Child("secret"), "replicas share the certificate in it"))
	}
	errs = append(errs, atLeast(at.Child("validity"), c.Validity, 10*time.Second)...)
	errs = append(errs, atLeast(at.Child("authorityValidity"), c.AuthorityValidity, 2*c.Validity.Duration)...)
	if block, _ := pem.Decode([]byte(c.CABundle)); c.CABundle != "" && (block == nil || block.Type != "CERTIFICATE") {
		errs = append(errs, field.Invalid(at.Child("caBundle"), c.CABundle, "must hold certificates in PEM"))
	}
	if c.Mode == CertificateManager && c.CertManagerCertificate == "" {
		errs = append(errs, field.Required(at.Child("certManagerCertificate"), "namespace/name of the Certificate"))
	}
	return errs
}

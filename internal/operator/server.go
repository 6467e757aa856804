package operator

import (
	"crypto/tls"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/certificate"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metricsauth"
)

// Whether somebody may read metrics is asked of the cluster, which the rights of a
// namespace do not suffice for:
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create,roleName=dynamo-operator-manager-cluster
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create,roleName=dynamo-operator-manager-cluster

// metricsServer serves metrics with the certificate that webhooks have, so that a
// scraper can verify whom it gives its token to.
func metricsServer(cfg config.Config, keeper *certificate.Keeper) metricsserver.Options {
	options := metricsserver.Options{BindAddress: orOff(cfg.Server.MetricsAddress)}
	if cfg.Server.SecureMetrics {
		options.SecureServing = true
		options.FilterProvider = metricsauth.Filter
		if file := cfg.Server.MetricsTokenFile; file != "" {
			options.FilterProvider = metricsauth.TokenFile(file)
		}
		if keeper != nil {
			options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.Certificate })
		}
	}
	if !cfg.Server.HTTP2 {
		options.TLSOpts = append(options.TLSOpts, func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} })
	}
	return options
}

// orOff spells an address that was left empty the way the servers know.
func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

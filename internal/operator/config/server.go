package config

// Server says where the operator listens. An empty address turns a server off.
type Server struct {
	MetricsAddress string `json:"metricsAddress,omitempty"`
	// SecureMetrics serves metrics over TLS to those alone who may get the path
	// /metrics in the cluster.
	SecureMetrics bool `json:"secureMetrics,omitempty"`
	// MetricsTokenFile holds the token of those who may read secure metrics, for an
	// operator that may not ask the API server who somebody is. It is read for each
	// request, so a new token needs no restart; without the file nobody may.
	MetricsTokenFile string `json:"metricsTokenFile,omitempty"`
	// MetricsService is the Service by which scrapers know the replicas. Its DNS
	// names are in the certificate.
	MetricsService string `json:"metricsService,omitempty"`
	HealthAddress  string `json:"healthAddress,omitempty"`
	// ProfileAddress is where Go's profiles of the running operator are served.
	ProfileAddress string `json:"profileAddress,omitempty"`
	// HTTP2 allows HTTP/2 on servers with TLS.
	HTTP2 bool `json:"http2,omitempty"`
}

// Secures reports whether metrics are served over TLS.
func (s Server) Secures() bool { return s.SecureMetrics && s.MetricsAddress != "" }

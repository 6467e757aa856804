package config

// API is which versions of the API are served.
type API struct {
	V1beta1 Version `json:"v1beta1,omitzero"`
}

// Version is about one version beside v1alpha1, which is always served.
type Version struct {
	// Enabled has the operator serve the version once conversion works. It takes an
	// operator for the whole cluster that registers its webhooks.
	Enabled bool `json:"enabled"`
}

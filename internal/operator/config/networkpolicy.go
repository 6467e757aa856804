package config

import "github.com/dynamo-operator/dynamo-operator/internal/core/render"

// NetworkPolicy closes the pods of graphs to others. It is off by default: who
// may reach what is a cluster's own affair.
type NetworkPolicy struct {
	Enabled bool `json:"enabled,omitempty"`
	// Namespaces are those whose pods may reach every pod, beside the
	// operator's: that of whoever scrapes metrics, for one.
	Namespaces []string `json:"namespaces,omitempty"`
}

func (n NetworkPolicy) render(own string) *render.NetworkPolicy {
	if !n.Enabled {
		return nil
	}
	namespaces := n.Namespaces
	if own != "" {
		namespaces = append([]string{own}, namespaces...)
	}
	return &render.NetworkPolicy{Namespaces: namespaces}
}

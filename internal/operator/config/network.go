package config

import (
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Network is how the operator reaches what runs in the cluster.
type Network struct {
	// ForwardProxy is an HTTP proxy on the way to pods and Services, for an
	// operator outside the cluster's network. Proxies that the environment
	// names are never used for this.
	ForwardProxy string `json:"forwardProxy,omitempty"`
}

func (n Network) validate(at *field.Path) field.ErrorList {
	if n.ForwardProxy == "" {
		return nil
	}
	if u, err := url.Parse(n.ForwardProxy); err != nil || u.Scheme != "http" || u.Host == "" {
		return field.ErrorList{field.Invalid(at.Child("forwardProxy"), n.ForwardProxy, "must be http://host:port")}
	}
	return nil
}

// Proxy is the one on the way to pods; nil to go straight.
func (n Network) Proxy() (*url.URL, error) {
	if n.ForwardProxy == "" {
		return nil, nil
	}
	return url.Parse(n.ForwardProxy)
}

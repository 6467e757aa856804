// Package discovery tells the processes of a graph of each other: each
// publishes what it serves, and whoever routes watches the whole. It carries
// descriptions only; requests travel elsewhere.
//
// Three stores exist: the Kubernetes API (DynamoWorkerMetadata objects joined
// with EndpointSlices), a folder, for processes on one machine, and memory, for
// components in one process.
package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/siphash"
)

// Store is a place to publish to and to watch.
type Store interface {
	// Publish replaces what this process says of itself. It does not fail:
	// stores that are away are tried again, the latest word winning.
	Publish(Metadata)
	// Watch calls f with everything that is live, at first and on every change,
	// until ctx ends.
	Watch(ctx context.Context, f func(Set))
	// Close withdraws what was published, waiting until that is known or ctx ends.
	Close(ctx context.Context)
}

// Metadata is what one process offers; its JSON is the data of a
// DynamoWorkerMetadata object, where all three maps are mandatory.
type Metadata struct {
	Endpoints     map[string]Endpoint        `json:"endpoints"`
	ModelCards    map[string]Model           `json:"model_cards"`
	EventChannels map[string]json.RawMessage `json:"event_channels"`
}

// NewMetadata returns an empty description.
func NewMetadata() Metadata {
	return Metadata{Endpoints: map[string]Endpoint{}, ModelCards: map[string]Model{}, EventChannels: map[string]json.RawMessage{}}
}

// Clone copies the maps.
func (m Metadata) Clone() Metadata {
	return Metadata{Endpoints: maps.Clone(m.Endpoints), ModelCards: maps.Clone(m.ModelCards), EventChannels: maps.Clone(m.EventChannels)}
}

// Address is the place of an endpoint in the graph.
type Address struct {
	Namespace string `json:"namespace"`
	Component string `json:"component"`
	Endpoint  string `json:"endpoint"`
	Instance  uint64 `json:"instance_id"`
}

// Key is namespace/component/endpoint/hex-instance.
func (a Address) Key() string {
	return fmt.Sprintf("%s/%s/%s/%x", a.Namespace, a.Component, a.Endpoint, a.Instance)
}

// URI is dyn://namespace.component.endpoint.
func (a Address) URI() string {
	return fmt.Sprintf("dyn://%s.%s.%s", a.Namespace, a.Component, a.Endpoint)
}

// ParseAddress reads "dyn://ns.component.endpoint" or "ns.component.endpoint".
func ParseAddress(text string) (Address, error) {
	parts := strings.Split(strings.TrimPrefix(text, "dyn://"), ".")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return Address{}, fmt.Errorf("endpoint %q is not namespace.component.endpoint", text)
	}
	return Address{Namespace: parts[0], Component: parts[1], Endpoint: parts[2]}, nil
}

// Endpoint is something that takes requests.
type Endpoint struct {
	Type string `json:"type"`
	Address
	Transport Transport `json:"transport"`
}

// NewEndpoint describes an endpoint served at a URL.
func NewEndpoint(a Address, url string) Endpoint {
	return Endpoint{Type: "Endpoint", Address: a, Transport: Transport{HTTP: url}}
}

// Transport says how to reach an endpoint. Ours is HTTP.
type Transport struct {
	HTTP string `json:"http,omitempty"`
	TCP  string `json:"tcp,omitempty"`
	NATS string `json:"nats_tcp,omitempty"`
}

// Model is a model card at an endpoint. Suffix tells an adapter from its base.
type Model struct {
	Type string `json:"type"`
	Address
	Card   Card   `json:"card_json"`
	Suffix string `json:"model_suffix,omitempty"`
}

// NewModel describes a model served by an endpoint.
func NewModel(a Address, card Card, suffix string) Model {
	return Model{Type: "Model", Address: a, Card: card, Suffix: suffix}
}

// Key is the endpoint's key with the suffix, if any.
func (m Model) Key() string {
	if m.Suffix == "" {
		return m.Address.Key()
	}
	return m.Address.Key() + "/" + m.Suffix
}

// Set is all that is live, keyed like the metadata.
type Set struct {
	Endpoints map[string]Endpoint
	Models    map[string]Model
}

// Merge joins the metadata of many processes.
func Merge(all ...Metadata) Set {
	s := Set{Endpoints: map[string]Endpoint{}, Models: map[string]Model{}}
	for _, m := range all {
		maps.Copy(s.Endpoints, m.Endpoints)
		maps.Copy(s.Models, m.ModelCards)
	}
	return s
}

// At returns the endpoints of one address, whatever the instance and the
// generation of workers, by instance.
func (s Set) At(a Address) []Endpoint {
	var out []Endpoint
	for _, key := range slices.Sorted(maps.Keys(s.Endpoints)) {
		e := s.Endpoints[key]
		if (e.Namespace == a.Namespace || strings.HasPrefix(e.Namespace, a.Namespace+"-")) && e.Component == a.Component && e.Endpoint == a.Endpoint {
			out = append(out, e)
		}
	}
	return out
}

// idMask keeps instance ids within 53 bits, which JSON numbers carry everywhere.
const idMask = 0x001FFFFFFFFFFFFF

// InstanceID derives an instance's id from its pod's name. The trailing byte is
// how the runtime's language hashes strings.
func InstanceID(pod string) uint64 {
	return siphash.Sum13(append([]byte(pod), 0xff)) & idMask
}

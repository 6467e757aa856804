package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

const (
	// registriesKey is where TrimPullSecret leaves the registries' hosts.
	registriesKey = "registries"
	// mostRegistries and longestRegistry bound what one Secret takes in memory: a
	// DNS name and a port have room, and nobody has accounts with more registries.
	mostRegistries  = 64
	longestRegistry = 253 + len(":65535")
)

// TrimPullSecret keeps of a Secret of type kubernetes.io/dockerconfigjson the
// hosts that it has credentials for, and of its metadata what names it: no
// password, no annotation. Informers transform an object more than once, so a
// trimmed Secret stays as it is.
func TrimPullSecret(object any) (any, error) {
	secret, ok := object.(*corev1.Secret)
	if !ok || guard.Outlines.Off() {
		return object, nil
	}
	trimmed := &corev1.Secret{
		TypeMeta: secret.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
			DeletionTimestamp: secret.DeletionTimestamp,
		},
		Type: secret.Type,
	}
	if hosts := hostsOf(secret); len(hosts) > 0 {
		trimmed.Data = map[string][]byte{registriesKey: []byte(strings.Join(hosts, "\n"))}
	}
	return trimmed, nil
}

// PullSecrets reads which Secrets of a namespace hold credentials for which
// registry. A Secret that cannot be read serves nobody and harms nobody.
func (f Facts) PullSecrets(ctx context.Context, namespace string) (snapshot.PullSecrets, error) {
	var secrets corev1.SecretList
	if err := f.Cached.List(ctx, &secrets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pull secrets of %s: %w", namespace, err)
	}
	known := snapshot.PullSecrets{}
	for i := range secrets.Items {
		s := &secrets.Items[i] // shared with the informer, and only read
		if s.Type != corev1.SecretTypeDockerConfigJson {
			continue
		}
		for _, host := range hostsOf(s) {
			known[host] = append(known[host], s.Name)
		}
	}
	for _, names := range known {
		slices.Sort(names)
	}
	return known, nil
}

// hostsOf reads the registries of a Secret, whole or trimmed, sorted.
func hostsOf(secret *corev1.Secret) []string {
	if config, whole := secret.Data[corev1.DockerConfigJsonKey]; whole {
		return registries(config)
	}
	if hosts := secret.Data[registriesKey]; len(hosts) > 0 {
		return bounded(strings.Split(string(hosts), "\n"))
	}
	return nil
}

// registries lists the hosts that a docker configuration has credentials for.
func registries(config []byte) []string {
	var parsed struct {
		Auths map[string]unread `json:"auths"`
	}
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil
	}
	var hosts []string
	for key := range parsed.Auths {
		host := key
		if u, err := url.Parse(key); err == nil && u.Host != "" {
			host = u.Host
		}
		host, _, _ = strings.Cut(host, "/")
		hosts = append(hosts, snapshot.NormalRegistry(host))
	}
	return bounded(hosts)
}

// bounded sorts hosts and leaves out what is no host, or too much.
func bounded(hosts []string) []string {
	hosts = slices.DeleteFunc(hosts, func(host string) bool {
		return host == "" || len(host) > longestRegistry || strings.Contains(host, "\n")
	})
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return hosts[:min(len(hosts), mostRegistries)]
}

// unread is a credential, which is not copied from the text that it stands in.
type unread struct{}

// UnmarshalJSON takes any value.
func (*unread) UnmarshalJSON([]byte) error { return nil }

package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

const (
	// mostRegistries and longestRegistry bound what one Secret takes in memory: a
	// DNS name and a port have room, and nobody has accounts with more registries.
	mostRegistries  = 64
	longestRegistry = 253 + len(":65535")
	// mostPullSecrets bounds how many Secrets of a namespace are read, the first by
	// name: each may have 1 MiB, and how many there are is a tenant's to say.
	mostPullSecrets = 128
	// parallelReads bounds how many Secrets are whole in memory at a time.
	parallelReads = 2
)

// TrimPullSecret keeps of the metadata of a pull secret what names it and its
// version.
func TrimPullSecret(object any) (any, error) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || guard.Outlines.Off() {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta: secret.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
			DeletionTimestamp: secret.DeletionTimestamp,
		},
	}, nil
}

// PullSecrets reads which Secrets of a namespace hold credentials for which
// registry. A Secret that cannot be read serves nobody and harms nobody. That one
// is there is learned from the informer, which holds no content; what it is for
// is read from the API server, once for each version.
func (f Facts) PullSecrets(ctx context.Context, namespace string) (snapshot.PullSecrets, error) {
	var secrets corev1.SecretList
	if err := f.Cached.List(ctx, &secrets, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pull secrets of %s: %w", namespace, err)
	}
	all := secrets.Items // shared with the informer, and only read
	slices.SortFunc(all, func(a, b corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	read := min(len(all), mostPullSecrets)
	remembered := cmp.Or(f.Registries, NewRegistries())
	for i := range all[read:] {
		remembered.Forget(all[read+i].UID)
	}
	known := snapshot.PullSecrets{}
	for i := range all[:read] {
		hosts, err := remembered.of(ctx, f.Direct, &all[i])
		if err != nil {
			return nil, fmt.Errorf("read pull secret %s/%s: %w", namespace, all[i].Name, err)
		}
		for _, host := range hosts {
			known[host] = append(known[host], all[i].Name)
		}
	}
	return known, nil
}

// Registries remembers which registries pull secrets have credentials for, and
// nothing else of them. A Secret is read when a reconcile over something in its
// namespace asks, once for each version.
type Registries struct {
	mu    sync.Mutex
	known map[types.UID]reading
	// reads is shared by reconciles that ask for the same, and reading has a place for
	// each read that may be under way. Who waits for one comes next, so that a
	// namespace with many Secrets does not keep another waiting for more than one.
	reads   singleflight.Group
	reading *semaphore.Weighted
}

// reading is what was read of one version of a Secret.
type reading struct {
	version string
	hosts   []string
}

// NewRegistries remembers nothing yet.
func NewRegistries() *Registries {
	return &Registries{known: map[types.UID]reading{}, reading: semaphore.NewWeighted(parallelReads)}
}

// Forget drops what is remembered of a Secret that is gone, or not asked for any
// more.
func (r *Registries) Forget(secret types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, secret)
}

// of returns the registries of a Secret of which the informer has told.
func (r *Registries) of(ctx context.Context, server client.Reader, held *corev1.Secret) ([]string, error) {
	r.mu.Lock()
	known, found := r.known[held.UID]
	r.mu.Unlock()
	if found && known.version == held.ResourceVersion {
		return known.hosts, nil
	}
	shared, err, _ := r.reads.Do(string(held.UID)+" "+held.ResourceVersion, func() (any, error) {
		now, err := r.read(ctx, server, held)
		if err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.known[held.UID] = now
		}
		return now.hosts, err
	})
	if err != nil {
		return nil, err
	}
	return shared.([]string), nil
}

// read asks for a Secret as it was seen, or as it is since. One that is gone is
// for nothing.
func (r *Registries) read(ctx context.Context, server client.Reader, held *corev1.Secret) (reading, error) {
	if err := r.reading.Acquire(ctx, 1); err != nil {
		return reading{}, err
	}
	defer r.reading.Release(1)
	secret := &corev1.Secret{}
	// From a version on, the API server answers from memory.
	since := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: held.ResourceVersion}}
	err := server.Get(ctx, client.ObjectKeyFromObject(held), secret, since)
	switch {
	case apierrors.IsNotFound(err):
		return reading{version: held.ResourceVersion}, nil
	case err != nil:
		return reading{}, err
	case secret.Type != corev1.SecretTypeDockerConfigJson:
		return reading{version: secret.ResourceVersion}, nil
	}
	return reading{secret.ResourceVersion, registries(secret.Data[corev1.DockerConfigJsonKey])}, nil
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
	few := slices.Clone(hosts[:min(len(hosts), mostRegistries)])
	for i := range few {
		few[i] = strings.Clone(few[i]) // it may be a part of a text of 1 MiB
	}
	return few
}

// unread is a credential, which is not copied from the text that it stands in.
type unread struct{}

// UnmarshalJSON takes any value.
func (*unread) UnmarshalJSON([]byte) error { return nil }

// Package volume lays out a pod's volumes as plain folders.
//
// Nothing is mounted: a Set puts the content where it finds place in the pod's
// folder and says, per container, which mountPath lies where. Content that comes
// from the API follows it, as on a real node. The package reads the cluster only
// through the Cluster interface, and does not retry: the caller knows when
// asking again makes sense.
package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/environ"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/mount"
)

// Cluster is what volumes are filled from.
type Cluster interface {
	environ.Source
	// Bound is the volume that a claim is bound to.
	Bound(ctx context.Context, namespace, claim string) (*corev1.PersistentVolume, error)
	// Token is a new token of the pod's ServiceAccount, bound to the pod.
	Token(ctx context.Context, pod *corev1.Pod, p *corev1.ServiceAccountTokenProjection) (Token, error)
}

// Token is a ServiceAccount token with its lifetime.
type Token struct {
	Text            string
	Issued, Expires time.Time
}

// due is when a token is renewed: as a kubelet does, at four fifths of its life.
func (t Token) due() time.Time { return t.Issued.Add(t.Expires.Sub(t.Issued) * 4 / 5) }

// Set is the volumes of one pod. It is not safe for concurrent use.
type Set struct {
	cluster     Cluster
	allocatable corev1.ResourceList
	dir         string // of the pod's own volumes
	shared      string // of volumes that outlive pods
	tokens      map[string]Token
	places      map[string]string
}

// NewSet makes the set of a pod whose own volumes go into dir, while persistent
// ones lie in the folder shared by all pods.
func NewSet(cluster Cluster, allocatable corev1.ResourceList, dir, shared string) *Set {
	return &Set{cluster: cluster, allocatable: allocatable, dir: dir, shared: shared, tokens: map[string]Token{}, places: map[string]string{}}
}

// Sync lays out every volume, and brings content from the API up to date. The
// error names all volumes that could not be.
func (s *Set) Sync(ctx context.Context, pod *corev1.Pod) error {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		place, err := s.lay(ctx, pod, v)
		if err != nil {
			errs = append(errs, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", v.Name, err))
			continue
		}
		s.places[v.Name] = place
	}
	return errors.Join(errs...)
}

// Due is when Sync should be called again to renew a token; zero if never.
func (s *Set) Due() time.Time {
	var due time.Time
	for _, t := range s.tokens {
		if d := t.due(); due.IsZero() || d.Before(due) {
			due = d
		}
	}
	return due
}

// Unsupported lists the volumes of kinds that are played by an empty folder.
func Unsupported(pod *corev1.Pod) []string {
	var out []string
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; kindOf(v) == unknown {
			out = append(out, v.Name)
		}
	}
	return out
}

func (s *Set) lay(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (string, error) {
	own := filepath.Join(s.dir, v.Name)
	switch kindOf(v) {
	case fromAPI:
		files, err := s.payload(ctx, pod, v)
		if err != nil {
			return "", err
		}
		return own, project(own, files)
	case host:
		return s.layHostPath(filepath.Join(s.shared, "hostpath", pod.Spec.NodeName, v.HostPath.Path), v.HostPath.Type)
	case claimed:
		pv, err := s.cluster.Bound(ctx, pod.Namespace, claimName(pod, v))
		if err != nil {
			return "", err
		}
		place := s.persistent(pv)
		return place, os.MkdirAll(place, 0o777)
	}
	return own, os.MkdirAll(own, 0o777)
}

func (s *Set) layHostPath(place string, kind *corev1.HostPathType) (string, error) {
	if kind == nil || *kind != corev1.HostPathFile && *kind != corev1.HostPathFileOrCreate {
		return place, os.MkdirAll(place, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
		return "", err
	}
	f, err := os.OpenFile(place, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return "", err
	}
	return place, f.Close()
}

// persistent is where a persistent volume lies: in the shared folder, wherever
// on a host it says it is. All nodes share it: they are the same machine, and
// claims are often mounted by pods of several nodes.
func (s *Set) persistent(pv *corev1.PersistentVolume) string {
	path := pv.Name
	switch {
	case pv.Spec.HostPath != nil:
		path = pv.Spec.HostPath.Path
	case pv.Spec.Local != nil:
		path = pv.Spec.Local.Path
	}
	// The cluster's own provisioner names the folder as it is.
	if inside, err := filepath.Rel(s.shared, path); err == nil && filepath.IsLocal(inside) {
		return path
	}
	return filepath.Join(s.shared, path)
}

// project writes files so that readers see either all old or all new ones.
func project(dir string, files map[string]volumeutil.FileProjection) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	w, err := volumeutil.NewAtomicWriter(dir, "volume "+dir)
	if err != nil {
		return err
	}
	return w.Write(files, nil)
}

// kind is how a volume comes to its content.
type kind int

const (
	unknown kind = iota
	scratch
	fromAPI
	host
	claimed
)

func kindOf(v *corev1.Volume) kind {
	switch src := v.VolumeSource; {
	case src.EmptyDir != nil, src == corev1.VolumeSource{}:
		return scratch
	case src.ConfigMap != nil, src.Secret != nil, src.DownwardAPI != nil, src.Projected != nil:
		return fromAPI
	case src.HostPath != nil:
		return host
	case src.PersistentVolumeClaim != nil, src.Ephemeral != nil:
		return claimed
	}
	return unknown
}

// claimName follows the rule for generic ephemeral volumes, whose claim a
// controller makes.
func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	if v.PersistentVolumeClaim != nil {
		return v.PersistentVolumeClaim.ClaimName
	}
	return pod.Name + "-" + v.Name
}

// Mounts says where the mountPaths of container c lie. Files that a subPath
// takes out of API content are copied into the folder copies: such mounts do
// not follow updates.
func (s *Set) Mounts(pod *corev1.Pod, c *corev1.Container, env *environ.Environment, copies string) ([]mount.Mount, error) {
	var out []mount.Mount
	for i, m := range c.VolumeMounts {
		place, ok := s.places[m.Name]
		if !ok {
			return nil, fmt.Errorf("container %s mounts volume %q, which is not there", c.Name, m.Name)
		}
		sub := m.SubPath
		if m.SubPathExpr != "" {
			var err error
			if sub, err = env.ExpandStrict(m.SubPathExpr); err != nil {
				return nil, fmt.Errorf("volume %q of container %s: %w", m.Name, c.Name, err)
			}
		}
		if sub != "" {
			if !filepath.IsLocal(sub) {
				return nil, fmt.Errorf("volume %q of container %s: subPath %q leaves the volume", m.Name, c.Name, sub)
			}
			var err error
			if place, err = s.part(pod, m.Name, filepath.Join(place, sub), filepath.Join(copies, fmt.Sprint(i), filepath.Base(sub))); err != nil {
				return nil, fmt.Errorf("subPath %q of volume %q of container %s: %w", sub, m.Name, c.Name, err)
			}
		}
		out = append(out, mount.Mount{Path: m.MountPath, Source: place})
	}
	return out, nil
}

// part is where a subPath lies: a copy if the volume's content comes from the
// API, otherwise the place itself, made if need be.
func (s *Set) part(pod *corev1.Pod, volume, place, copied string) (string, error) {
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
	if i < 0 || kindOf(&pod.Spec.Volumes[i]) != fromAPI {
		if _, err := os.Stat(place); err == nil {
			return place, nil
		}
		return place, os.MkdirAll(place, 0o777)
	}
	if err := os.RemoveAll(copied); err != nil {
		return "", err
	}
	info, err := os.Stat(place)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return copied, os.CopyFS(copied, os.DirFS(place))
	}
	data, err := os.ReadFile(place)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
		return "", err
	}
	return copied, os.WriteFile(copied, data, info.Mode().Perm())
}

// optional turns a missing object into no object where the volume allows it.
func optional(err error, allowed *bool) error {
	if allowed != nil && *allowed && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

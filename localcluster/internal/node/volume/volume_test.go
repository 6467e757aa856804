package volume

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/environ"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/mount"
)

type cluster struct {
	configMaps map[string]map[string]string
	secrets    map[string]map[string][]byte
	bound      map[string]*corev1.PersistentVolume
	tokens     int
}

func notFound(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func (c *cluster) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	if data, ok := c.configMaps[name]; ok {
		return &corev1.ConfigMap{Data: data}, nil
	}
	return nil, notFound("configmap", name)
}

func (c *cluster) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if data, ok := c.secrets[name]; ok {
		return &corev1.Secret{Data: data}, nil
	}
	return nil, notFound("secret", name)
}

func (c *cluster) Bound(_ context.Context, _, name string) (*corev1.PersistentVolume, error) {
	if pv, ok := c.bound[name]; ok {
		return pv, nil
	}
	return nil, notFound("persistentvolumeclaim", name)
}

func (c *cluster) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (Token, error) {
	c.tokens++
	return Token{Text: fmt.Sprintf("token-%d", c.tokens), Issued: time.Now(), Expires: time.Now().Add(time.Hour)}, nil
}

func podWith(volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{NodeName: "node-0", Volumes: volumes},
	}
}

func volume(name string, src corev1.VolumeSource) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: src}
}

// visible is the files a container would see, with their content.
func visible(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), "..") && path != dir {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func hostPath(path string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}}
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func TestLayout(t *testing.T) {
	for name, c := range map[string]struct {
		volume  corev1.VolumeSource
		at      string // below the cluster's folder
		want    map[string]string
		wantErr string
	}{
		"an emptyDir is an empty folder": {
			volume: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, at: "pod/v", want: map[string]string{},
		},
		"a ConfigMap is a file per key": {
			volume: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cm")}},
			at:     "pod/v", want: map[string]string{"a": "1", "b": "2"},
		},
		"items choose keys and names": {
			volume: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cm"), Items: []corev1.KeyToPath{{Key: "a", Path: "x"}}}},
			at:     "pod/v", want: map[string]string{"x": "1"},
		},
		"an item without its key is missing": {
			volume:  corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cm"), Items: []corev1.KeyToPath{{Key: "zz", Path: "x"}}}},
			wantErr: `MountVolume.SetUp failed for volume "v" : configmap references non-existent config key: zz`,
		},
		"a missing Secret is named": {
			volume:  corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "zz"}},
			wantErr: `MountVolume.SetUp failed for volume "v" : secret "zz" not found`,
		},
		"an optional Secret may be missing": {
			volume: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "zz", Optional: new(true)}},
			at:     "pod/v", want: map[string]string{},
		},
		"the downward API is files": {
			volume: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}},
			at:     "pod/v", want: map[string]string{"labels": `app="x"`},
		},
		"a projected volume joins its sources": {
			volume: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("cm"), Items: []corev1.KeyToPath{{Key: "a", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
			}}},
			at: "pod/v", want: map[string]string{"token": "token-1", "ca.crt": "1", "namespace": "ns"},
		},
		"a claim lies where its volume says, below the shared folder": {
			volume: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}},
			at:     "shared/tmp/pv-1", want: map[string]string{},
		},
		"a volume of the cluster's own provisioner lies where it says": {
			volume: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "own"}},
			at:     "shared/pvc-1", want: map[string]string{},
		},
		"a claim that is not bound is named": {
			volume:  corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "zz"}},
			wantErr: `MountVolume.SetUp failed for volume "v" : persistentvolumeclaim "zz" not found`,
		},
		"a path of the host is one of the node, never of the machine": {
			volume: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/x"}},
			at:     "shared/hostpath/node-0/var/lib/x", want: map[string]string{},
		},
		"a kind that is unknown is an empty folder": {
			volume: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}, at: "pod/v", want: map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := NewSet(&cluster{
				configMaps: map[string]map[string]string{"cm": {"a": "1", "b": "2"}},
				bound:      map[string]*corev1.PersistentVolume{"claim": hostPath("/tmp/pv-1"), "own": hostPath(filepath.Join(dir, "shared", "pvc-1"))},
			}, nil, filepath.Join(dir, "pod"), filepath.Join(dir, "shared"))
			err := s.Sync(t.Context(), podWith(volume("v", c.volume)))
			if c.wantErr != "" {
				if err == nil || err.Error() != c.wantErr {
					t.Fatalf("error %v, want %s", err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.places["v"], filepath.Join(dir, c.at); got != want {
				t.Errorf("place %s, want %s", got, want)
			}
			if diff := cmp.Diff(c.want, visible(t, filepath.Join(dir, c.at))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestContentFollowsTheAPIButNotThroughASubPath(t *testing.T) {
	dir := t.TempDir()
	c := &cluster{configMaps: map[string]map[string]string{"cm": {"a": "old"}}}
	pod := podWith(volume("v", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cm")}}), volume("w", corev1.VolumeSource{}))
	s := NewSet(c, nil, filepath.Join(dir, "pod"), filepath.Join(dir, "shared"))
	if err := s.Sync(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	mounts, err := s.Mounts(pod, &corev1.Container{Name: "main", VolumeMounts: []corev1.VolumeMount{
		{Name: "v", MountPath: "/whole"},
		{Name: "v", MountPath: "/etc/a", SubPath: "a"},
		{Name: "w", MountPath: "/work", SubPath: "made/up"},
	}}, &environ.Environment{}, filepath.Join(dir, "copies"))
	if err != nil {
		t.Fatal(err)
	}
	want := []mount.Mount{
		{Path: "/whole", Source: filepath.Join(dir, "pod", "v")},
		{Path: "/etc/a", Source: filepath.Join(dir, "copies", "1", "a")},
		{Path: "/work", Source: filepath.Join(dir, "pod", "w", "made", "up")},
	}
	if diff := cmp.Diff(want, mounts); diff != "" {
		t.Fatal(diff)
	}

	c.configMaps["cm"] = map[string]string{"a": "new"}
	if err := s.Sync(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, path := range []string{filepath.Join(mounts[0].Source, "a"), mounts[1].Source} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(filepath.Dir(path))] = string(data)
	}
	if diff := cmp.Diff(map[string]string{"v": "new", "1": "old"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestASubPathStaysInTheVolume(t *testing.T) {
	dir := t.TempDir()
	pod := podWith(volume("w", corev1.VolumeSource{}))
	s := NewSet(&cluster{}, nil, filepath.Join(dir, "pod"), filepath.Join(dir, "shared"))
	if err := s.Sync(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	_, err := s.Mounts(pod, &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "w", MountPath: "/x", SubPath: "../../.."}}}, &environ.Environment{}, dir)
	if err == nil {
		t.Error("no error")
	}
}

func TestATokenIsRenewedBeforeItExpiresAndNotEarlier(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		pod := podWith(volume("v", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}))
		s := NewSet(c, nil, filepath.Join(dir, "pod"), filepath.Join(dir, "shared"))
		sync := func(want int) {
			t.Helper()
			if err := s.Sync(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if c.tokens != want {
				t.Fatalf("%d tokens, want %d", c.tokens, want)
			}
		}
		sync(1)
		time.Sleep(47 * time.Minute)
		sync(1)
		if got := time.Until(s.Due()); got != time.Minute {
			t.Fatalf("due in %v", got)
		}
		time.Sleep(time.Minute)
		sync(2)
	})
}

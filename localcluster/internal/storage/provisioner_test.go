package storage

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
)

func TestVolumeFor(t *testing.T) {
	claim := claim("cache", ClassName)
	retain := &storagev1.StorageClass{
		ObjectMeta:    metav1.ObjectMeta{Name: "kept"},
		ReclaimPolicy: new(corev1.PersistentVolumeReclaimRetain),
	}
	for name, tc := range map[string]struct {
		class *storagev1.StorageClass
		want  corev1.PersistentVolumeReclaimPolicy
	}{
		"the default class deletes":         {Class(), corev1.PersistentVolumeReclaimDelete},
		"a class that retains is respected": {retain, corev1.PersistentVolumeReclaimRetain},
		"a class without a policy deletes":  {&storagev1.StorageClass{}, corev1.PersistentVolumeReclaimDelete},
	} {
		t.Run(name, func(t *testing.T) {
			got := volumeFor(claim, tc.class, "/v")
			want := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{
					Name:        "pvc-uid-cache",
					Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": Provisioner},
				},
				Spec: corev1.PersistentVolumeSpec{
					Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")},
					AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
					StorageClassName:              tc.class.Name,
					PersistentVolumeReclaimPolicy: tc.want,
					PersistentVolumeSource: corev1.PersistentVolumeSource{
						HostPath: &corev1.HostPathVolumeSource{Path: "/v/pvc-uid-cache"},
					},
					ClaimRef: &corev1.ObjectReference{
						APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "llm", Name: "cache", UID: "uid-cache",
					},
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("volume (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProvision(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   int
	}{
		"a claim assigned to us gets a folder": {func(*corev1.PersistentVolumeClaim) {}, 1},
		"a claim that Kubernetes has not looked at waits": {func(c *corev1.PersistentVolumeClaim) {
			delete(c.Annotations, provisionerAnnotation)
		}, 0},
		"a claim of somebody else's class is not touched": {func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[provisionerAnnotation] = "csi.example.com"
		}, 0},
		"a bound claim has what it needs": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-1" }, 0},
		"a block device cannot be had":    {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claim("cache", ClassName)
			tc.change(claim)
			p, _ := start(t, Class(), claim)
			if err := p.provision(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			folders, err := os.ReadDir(p.volumes)
			if err != nil {
				t.Fatal(err)
			}
			if volumes := list(t, p); len(volumes) != tc.want || len(folders) != tc.want {
				t.Errorf("%d volumes and %d folders, want %d", len(volumes), len(folders), tc.want)
			}
		})
	}
}

func TestProvisioningTwiceIsHarmless(t *testing.T) {
	claim := claim("cache", ClassName)
	p, _ := start(t, Class(), claim)
	for range 2 {
		if err := p.provision(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	if volumes := list(t, p); len(volumes) != 1 {
		t.Errorf("%d volumes, want 1", len(volumes))
	}
}

func TestReclaim(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolume)
		gone   bool
	}{
		"a released volume goes with its folder": {func(*corev1.PersistentVolume) {}, true},
		"a bound one stays":                      {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"one to be retained stays": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"somebody else's stays": {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, client := start(t)
			volume := volumeFor(claim("cache", ClassName), Class(), p.volumes)
			volume.Status.Phase = corev1.VolumeReleased
			tc.change(volume)
			folder := filepath.Join(p.volumes, volume.Name)
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := client.Tracker().Add(volume); err != nil {
				t.Fatal(err)
			}
			if err := p.reclaim(t.Context(), volume); err != nil {
				t.Fatal(err)
			}
			_, err := os.Stat(folder)
			if gone := os.IsNotExist(err); gone != tc.gone || (len(list(t, p)) == 0) != tc.gone {
				t.Errorf("folder gone: %v, volumes left: %d; want gone: %v", gone, len(list(t, p)), tc.gone)
			}
		})
	}
}

func TestRunFollowsTheCluster(t *testing.T) {
	p, client := start(t, Class())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.run(ctx) }()
	if _, err := client.CoreV1().PersistentVolumeClaims("llm").Create(ctx, claim("cache", ClassName), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for len(list(t, p)) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no volume was made")
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func start(t *testing.T, objects ...runtime.Object) (*provisioner, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(objects...)
	return &provisioner{client: client, volumes: t.TempDir(), events: record.NewFakeRecorder(10)}, client
}

func list(t *testing.T, p *provisioner) []corev1.PersistentVolume {
	t.Helper()
	volumes, err := p.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return volumes.Items
}

func claim(name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "llm", Name: name, UID: types.UID("uid-" + name),
			Annotations: map[string]string{provisionerAnnotation: Provisioner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")},
			},
		},
	}
}

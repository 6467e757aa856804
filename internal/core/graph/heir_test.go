package graph

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestHeir(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "models", Labels: map[string]string{v1alpha1.LabelGraphUID: "first"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
		},
	}
	asking := func(name string, change func(*v1alpha1.DynamoGraphDeployment, *v1alpha1.PVC)) *v1alpha1.DynamoGraphDeployment {
		g := &v1alpha1.DynamoGraphDeployment{}
		g.Namespace, g.Name, g.UID = "lab", name, "uid"
		g.Spec.PVCs = []v1alpha1.PVC{{Name: "models", Create: new(true), StorageClass: "fast", Size: new(resource.MustParse("2Gi")), VolumeAccessMode: corev1.ReadWriteMany}}
		change(g, &g.Spec.PVCs[0])
		return g
	}
	for rule, c := range map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment, *v1alpha1.PVC)
		heir   bool
		as     bool
	}{
		"one that asks for the same":                 {func(*v1alpha1.DynamoGraphDeployment, *v1alpha1.PVC) {}, true, true},
		"one that asks for more has it grow":         {func(_ *v1alpha1.DynamoGraphDeployment, p *v1alpha1.PVC) { p.Size = new(resource.MustParse("3Gi")) }, true, true},
		"one that asks for less is served by it":     {func(_ *v1alpha1.DynamoGraphDeployment, p *v1alpha1.PVC) { p.Size = new(resource.MustParse("1Gi")) }, true, false},
		"one that asks for another class, too":       {func(_ *v1alpha1.DynamoGraphDeployment, p *v1alpha1.PVC) { p.StorageClass = "slow" }, true, false},
		"one that asks for another mode, too":        {func(_ *v1alpha1.DynamoGraphDeployment, p *v1alpha1.PVC) { p.VolumeAccessMode = corev1.ReadWriteOnce }, true, false},
		"not one that finds its claim":               {func(_ *v1alpha1.DynamoGraphDeployment, p *v1alpha1.PVC) { p.Create = nil }, false, false},
		"not one of another claim":                   {func(_ *v1alpha1.DynamoGraphDeployment, p *v1alpha1.PVC) { p.Name = "cache" }, false, false},
		"not one that is being deleted":              {func(g *v1alpha1.DynamoGraphDeployment, _ *v1alpha1.PVC) { g.DeletionTimestamp = new(metav1.Now()) }, false, false},
		"not one of another namespace":               {func(g *v1alpha1.DynamoGraphDeployment, _ *v1alpha1.PVC) { g.Namespace = "other" }, false, false},
		"not the one that the claim was created for": {func(g *v1alpha1.DynamoGraphDeployment, _ *v1alpha1.PVC) { g.UID = "first" }, false, false},
	} {
		t.Run(rule, func(t *testing.T) {
			later := asking("z", func(_ *v1alpha1.DynamoGraphDeployment, p *v1alpha1.PVC) { p.Create = nil })
			heir, as := Heir(claim, []*v1alpha1.DynamoGraphDeployment{later, asking("a", c.change)})
			if (heir != nil) != c.heir || as != c.as {
				t.Errorf("heir %v, as asked %v", heir, as)
			}
		})
	}
	same := func(*v1alpha1.DynamoGraphDeployment, *v1alpha1.PVC) {}
	if heir, _ := Heir(claim, []*v1alpha1.DynamoGraphDeployment{asking("c", same), asking("b", same)}); heir == nil || heir.Name != "b" {
		t.Errorf("of several the first by name, not %v", heir)
	}
}

package addon

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/health"
)

// fieldManager owns what an add-on installs; a later version's manifests replace it.
const fieldManager = "localcluster"

const kindCRD = "CustomResourceDefinition"

// resources are the kinds that add-ons are made of. All are cluster-wide.
var resources = map[string]schema.GroupVersionResource{
	kindCRD:                {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	kindMutatingWebhooks:   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	kindValidatingWebhooks: {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	kindClusterRole:        {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	kindClusterRoleBinding: {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
}

// Install writes the objects of the add-ons and returns when their kinds are served. It is safe to repeat.
func (s Set) Install(ctx context.Context, client dynamic.Interface, c controlplane.Cluster) error {
	folder, err := folder()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, a := range s {
		group.Go(func() error {
			// Some kinds are more than a megabyte, which takes the better part of a second to read.
			objects, err := a.objects(c, folder)
			if err != nil {
				return fmt.Errorf("add-on %s: %w", a.name, err)
			}
			for _, object := range objects {
				group.Go(func() error {
					if err := apply(ctx, client, object); err != nil {
						return fmt.Errorf("add-on %s: %w", a.name, err)
					}
					return nil
				})
			}
			return nil
		})
	}
	return group.Wait()
}

func (a addOn) objects(c controlplane.Cluster, folder string) ([]*unstructured.Unstructured, error) {
	manifests, err := readManifests(a.manifests(folder))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, object := range manifests {
		if a.adapt != nil {
			keep, err := a.adapt(c, object)
			if err != nil {
				return nil, fmt.Errorf("adapt %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			if !keep {
				continue
			}
		}
		objects = append(objects, object)
	}
	if a.grants != nil {
		for _, g := range a.grants() {
			objects = append(objects, g.objects()...)
		}
	}
	return objects, nil
}

func apply(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	resource, ok := resources[object.GetKind()]
	if !ok {
		return fmt.Errorf("apply %s %s: an add-on has no such kind", object.GetKind(), object.GetName())
	}
	_, err := client.Resource(resource).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	if object.GetKind() != kindCRD {
		return nil
	}
	return health.Wait(ctx, func(ctx context.Context) error {
		live, err := client.Resource(resource).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !established(live) {
			return fmt.Errorf("kind %s is not served yet", object.GetName())
		}
		return nil
	})
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// onlyVirtualServices leaves the rest of Istio out: nothing here would look at it.
func onlyVirtualServices(_ controlplane.Cluster, object *unstructured.Unstructured) (bool, error) {
	return object.GetName() == "virtualservices.networking.istio.io", nil
}

package server

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collectable are the kinds of children that the garbage collector is played for.
var collectable = []schema.GroupVersionKind{
	{Group: "nvidia.com", Version: "v1alpha1", Kind: "DynamoComponentDeployment"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

// collect plays the garbage collector once over this world: what is owned by
// nobody who still exists goes.
func (w world) collect() {
	w.Helper()
	w.eventually("nothing left to collect", func(ctx context.Context) error {
		var all []unstructured.Unstructured
		alive := map[types.UID]bool{}
		for _, kind := range append([]schema.GroupVersionKind{{Group: "nvidia.com", Version: "v1alpha1", Kind: "DynamoGraphDeployment"}}, collectable...) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := cluster.Client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			for _, item := range list.Items {
				alive[item.GetUID()] = true
			}
			all = append(all, list.Items...)
		}
		collected := 0
		for i := range all {
			owner := metav1.GetControllerOf(&all[i])
			if owner == nil || alive[owner.UID] {
				continue
			}
			collected++
			if err := client.IgnoreNotFound(cluster.Client.Delete(ctx, &all[i])); err != nil {
				return err
			}
		}
		if collected > 0 {
			return fmt.Errorf("%d more collected", collected)
		}
		return nil
	})
}

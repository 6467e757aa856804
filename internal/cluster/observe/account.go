package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// AccountUsers reads who in a namespace may use the ServiceAccounts that graphs
// share: every graph and every component.
func AccountUsers(ctx context.Context, reader client.Reader, namespace string) (snapshot.AccountUsers, error) {
	var users snapshot.AccountUsers
	var graphs v1alpha1.DynamoGraphDeploymentList
	if err := reader.List(ctx, &graphs, client.InNamespace(namespace)); err != nil {
		return users, fmt.Errorf("list graphs of %s: %w", namespace, err)
	}
	var components v1alpha1.DynamoComponentDeploymentList
	if err := reader.List(ctx, &components, client.InNamespace(namespace)); err != nil {
		return users, fmt.Errorf("list components of %s: %w", namespace, err)
	}
	users.Graphs, users.Components = graphs.Items, components.Items
	return users, nil
}

// AccountObjects reads a ServiceAccount and the RoleBinding of the given name
// beside it, as far as they exist.
func AccountObjects(ctx context.Context, reader client.Reader, namespace, account, binding string) ([]graph.Object, error) {
	var found []graph.Object
	for name, object := range map[string]client.Object{account: &corev1.ServiceAccount{}, binding: &rbacv1.RoleBinding{}} {
		err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("look for %T %s/%s: %w", object, namespace, name, err)
		}
		if err == nil {
			found = append(found, object)
		}
	}
	return found, nil
}

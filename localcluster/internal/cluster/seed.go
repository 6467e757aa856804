package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/storage"
)

// seed makes the few objects that the cluster's own programs need. A user's changes to the StorageClass and to
// DeviceClasses stay; roles follow this version.
func seed(ctx context.Context, client kubernetes.Interface, devices device.Counts) error {
	_, err := client.StorageV1().StorageClasses().Create(ctx, storage.Class(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create StorageClass: %w", err)
	}
	for _, class := range devices.Classes() {
		_, err := client.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create DeviceClass %s: %w", class.Name, err)
		}
	}
	for user, rules := range roles {
		if err := grant(ctx, client, user, rules); err != nil {
			return err
		}
	}
	return nil
}

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
)

var roles = map[string][]rbacv1.PolicyRule{
	pki.ProxyUser: {
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
	},
	// What a kubelet may, for all nodes, and what a volume provisioner may.
	pki.NodeAgentUser: {
		{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status", "pods", "pods/status", "persistentvolumes"}, Verbs: write},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction", "serviceaccounts/token"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{
			"configmaps", "secrets", "serviceaccounts", "services", "namespaces", "persistentvolumeclaims",
		}, Verbs: read},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "update", "patch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: write},
		{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses", "csinodes", "csidrivers"}, Verbs: read},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims", "deviceclasses"}, Verbs: read},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceslices"}, Verbs: write},
		// A driver says that the devices of a claim are prepared; one agent does so for the drivers of all nodes.
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims/driver"}, Verbs: []string{"arbitrary-node:patch"}},
		{APIGroups: []string{"node.k8s.io"}, Resources: []string{"runtimeclasses"}, Verbs: read},
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	},
}

// grant gives a user exactly these rights, by a role and a binding of the user's name.
func grant(ctx context.Context, client kubernetes.Interface, user string, rules []rbacv1.PolicyRule) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write ClusterRole %s: %w", user, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ClusterRoleBinding %s: %w", user, err)
	}
	return nil
}

package attack

import (
	"context"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
)

// beyond is an attack by somebody with a role in a namespace on something that
// the role does not reach.
func beyond(name, role string, attempt func(s *scene, mallory client.WithWatch, ns string) error) attack {
	return attack{name: name, heldBy: []barrier{rights}, try: func(s *scene) outcome {
		ns := s.namespace(nil)
		s.create(graphOf(ns, "g", idle))
		s.ready(ns, "g")
		return s.refused(attempt(s, s.tenant(ns, role), ns))
	}}
}

// asAccount is an attack by a pod that runs under an account which the operator
// made for an object of its namespace: everything in the list must be refused.
func asAccount(name, account string, why func(ns string) *unstructured.Unstructured, tries func(victim, ns string) []authorizationv1.ResourceAttributes) attack {
	return attack{name: name, finding: "S10", heldBy: []barrier{rights}, try: func(s *scene) outcome {
		victim, ns := s.namespace(nil), s.namespace(nil)
		s.create(why(ns))
		o := &corev1.ServiceAccount{ObjectMeta: meta(ns, account)}
		s.eventually("account "+account, s.exists(o))
		pod := s.as(o)
		var allowed []string
		for _, right := range tries(victim, ns) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
			if err := pod.Create(s.ctx, review); err != nil {
				s.Fatal(err)
			}
			if review.Status.Allowed {
				allowed = append(allowed, strings.Join([]string{right.Verb, right.Group, right.Resource, right.Namespace}, " "))
			}
		}
		// What is asked about is also done: the list of another namespace's Secrets.
		err := pod.List(s.ctx, &corev1.SecretList{}, client.InNamespace(victim))
		if err == nil {
			allowed = append(allowed, "the Secrets of another namespace were read")
		} else if !apierrors.IsForbidden(err) {
			s.Fatal(err)
		}
		if len(allowed) > 0 {
			return gotThrough("%s", strings.Join(allowed, "; "))
		}
		return held("%v", err)
	}}
}

// elsewhere is everything in another namespace, and what no pod of a graph needs
// in its own.
func elsewhere(more ...authorizationv1.ResourceAttributes) func(victim, ns string) []authorizationv1.ResourceAttributes {
	return func(victim, ns string) []authorizationv1.ResourceAttributes {
		var list []authorizationv1.ResourceAttributes
		for _, verb := range []string{"get", "create", "patch", "delete"} {
			for _, resource := range []string{"dynamographdeployments", "dynamocomponentdeployments", "dynamomodels", "dynamographdeploymentrequests", "dynamoworkermetadatas"} {
				list = append(list, authorizationv1.ResourceAttributes{Namespace: victim, Group: v1alpha1.GroupName, Resource: resource, Verb: verb})
			}
			for _, resource := range []string{"pods", "secrets", "configmaps"} {
				list = append(list, authorizationv1.ResourceAttributes{Namespace: victim, Resource: resource, Verb: verb})
			}
		}
		for _, right := range slices.Concat(more, []authorizationv1.ResourceAttributes{
			{Resource: "secrets", Verb: "get"}, {Resource: "secrets", Verb: "list"}, {Resource: "pods", Verb: "create"}, {Resource: "pods", Subresource: "exec", Verb: "create"},
			{Resource: "serviceaccounts", Subresource: "token", Verb: "create"},
			{Group: rbacv1.GroupName, Resource: "rolebindings", Verb: "create"}, {Group: rbacv1.GroupName, Resource: "roles", Verb: "escalate"},
			{Group: "apps", Resource: "deployments", Verb: "create"},
			{Group: v1alpha1.GroupName, Resource: "dynamographdeployments", Subresource: "status", Verb: "patch"},
			{Group: v1alpha1.GroupName, Resource: "namespacescopes", Verb: "hold"},
		}) {
			right.Namespace = ns
			list = append(list, right)
		}
		return list
	}
}

var _ = add(
	beyond("an editor writes the status of a graph", "edit", func(s *scene, mallory client.WithWatch, ns string) error {
		return mallory.Status().Patch(s.ctx, graphOf(ns, "g", `{}`), merge(`{"status":{"state":"failed"}}`))
	}),
	beyond("an administrator of a namespace writes the status of a graph", "admin", func(s *scene, mallory client.WithWatch, ns string) error {
		return mallory.Status().Patch(s.ctx, graphOf(ns, "g", `{}`), merge(`{"status":{"state":"failed"}}`))
	}),
	beyond("an editor writes into a request's status where its graph was made", "edit", func(s *scene, mallory client.WithWatch, ns string) error {
		s.create(ofOurs("DynamoGraphDeploymentRequest", ns, "r", `{model: m, backend: vllm, profilingConfig: {profilerImage: i, config: {}}}`))
		return mallory.Status().Patch(s.ctx, ofOurs("DynamoGraphDeploymentRequest", ns, "r", `{}`),
			merge(`{"status":{"deployment":{"name":"g","namespace":"kube-system","created":true}}}`))
	}),
	beyond("a viewer scales a graph", "view", func(s *scene, mallory client.WithWatch, ns string) error {
		return mallory.Patch(s.ctx, graphOf(ns, "g", `{}`), merge(`{"spec":{"services":{"a":{"replicas":2}}}}`))
	}),
	beyond("an editor publishes the metadata of a worker that they are not", "edit", func(s *scene, mallory client.WithWatch, ns string) error {
		return mallory.Create(s.ctx, read(`{apiVersion: nvidia.com/v1alpha1, kind: DynamoWorkerMetadata, metadata: {name: g-a-0}, spec: {data: {}}}`, ns))
	}),
	beyond("an editor makes an adapter that claims to be the operator's", "edit", func(s *scene, mallory client.WithWatch, ns string) error {
		return mallory.Create(s.ctx, adapter(ns, "g-a", "g", "a"))
	}),
	beyond("an administrator of a namespace removes a policy", "admin", func(s *scene, mallory client.WithWatch, ns string) error {
		// One of its own, so that the others go on being enforced.
		binding := read(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: x}, spec: {policyName: none, validationActions: [Deny]}}`, "")
		binding.SetName(ns)
		s.create(binding)
		s.Cleanup(func() { s.Client.Delete(context.Background(), binding) })
		return mallory.Delete(s.ctx, binding)
	}),
	beyond("an administrator of a namespace points the webhooks elsewhere", "admin", func(s *scene, mallory client.WithWatch, _ string) error {
		return mallory.Create(s.ctx, read(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {generateName: mallory-}, webhooks: []}`, ""), dryRun)
	}),
	beyond("an administrator of a namespace changes the definition of a kind", "admin", func(s *scene, mallory client.WithWatch, _ string) error {
		return mallory.Patch(s.ctx, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "dynamographdeployments.nvidia.com"), merge(`{"metadata":{"labels":{"mine":"yes"}}}`), dryRun)
	}),
	beyond("an administrator of a namespace takes the planner's role elsewhere", "admin", func(s *scene, mallory client.WithWatch, ns string) error {
		return mallory.Create(s.ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta("default", "mallory"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-planner"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "default"}},
		}, dryRun)
	}),
	beyond("an administrator of a namespace gives themselves the operator's role there", "admin", func(s *scene, mallory client.WithWatch, ns string) error {
		return mallory.Create(s.ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta(ns, "mallory"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-manager"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "default"}},
		}, dryRun)
	}),
	beyond("an administrator of a namespace takes a token of the operator's account", "admin", func(s *scene, mallory client.WithWatch, _ string) error {
		return mallory.SubResource("token").Create(s.ctx, &corev1.ServiceAccount{ObjectMeta: meta(installation.Namespace, installation.Deployment)}, &authenticationv1.TokenRequest{})
	}),
	beyond("an administrator of a namespace reads the webhooks' key", "admin", func(s *scene, mallory client.WithWatch, _ string) error {
		return client.IgnoreNotFound(mallory.Get(s.ctx, client.ObjectKey{Namespace: installation.Namespace, Name: "webhook-server-cert"}, &corev1.Secret{}))
	}),
	beyond("an administrator of a namespace changes the operator's configuration", "admin", func(s *scene, mallory client.WithWatch, _ string) error {
		return mallory.Patch(s.ctx, object("v1", "ConfigMap", installation.Namespace, "dynamo-operator-config"), merge(`{"data":{"config.yaml":""}}`), dryRun)
	}),
	asAccount("a planner's pod acts in another namespace or beyond its task", "planner-serviceaccount",
		func(ns string) *unstructured.Unstructured {
			return graphOf(ns, "g", `{services: {planner: {componentType: planner, `+image+`}}}`)
		},
		elsewhere(
			authorizationv1.ResourceAttributes{Group: v1alpha1.GroupName, Resource: "dynamographdeployments", Verb: "delete"},
			authorizationv1.ResourceAttributes{Resource: "configmaps", Verb: "create"},
		)),
	asAccount("a worker's pod acts in another namespace or changes graphs", "g-k8s-service-discovery",
		func(ns string) *unstructured.Unstructured { return graphOf(ns, "g", idle) },
		elsewhere(
			authorizationv1.ResourceAttributes{Group: v1alpha1.GroupName, Resource: "dynamographdeployments", Verb: "patch"},
			authorizationv1.ResourceAttributes{Group: v1alpha1.GroupName, Resource: "dynamographdeployments", Verb: "create"},
			authorizationv1.ResourceAttributes{Resource: "configmaps", Verb: "get"},
		)),
	asAccount("a profiler's pod acts in another namespace or beyond its task", render.ProfilerAccount,
		func(ns string) *unstructured.Unstructured { return requestOf(ns, "r", "") },
		elsewhere(
			authorizationv1.ResourceAttributes{Group: v1alpha1.GroupName, Resource: "dynamographdeploymentrequests", Verb: "create"},
			authorizationv1.ResourceAttributes{Group: v1alpha1.GroupName, Resource: "dynamographdeploymentrequests", Verb: "patch"},
			authorizationv1.ResourceAttributes{Resource: "configmaps", Verb: "delete"},
		)),
)

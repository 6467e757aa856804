package installation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// TestWhatIsOfOthersOutlivesAnUninstallation because a namespace takes all that is in it
// along, and because webhooks are of an operator for the whole cluster.
func TestWhatIsOfOthersOutlivesAnUninstallation(t *testing.T) {
	const home = "ops"
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: home, Name: name} }
	shipped := func(kind, version, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(version)
		o.SetKind(kind)
		o.SetName(name)
		if kind != "Namespace" && kind != "ClusterRole" {
			o.SetNamespace(home)
		}
		return o
	}
	always := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Registration}},
		&appsv1.Deployment{ObjectMeta: in(Deployment)},
		&corev1.ConfigMap{ObjectMeta: in(Configuration)},
		// What nobody installed: the cluster's own, and what the operator wrote.
		&corev1.ConfigMap{ObjectMeta: in("kube-root-ca.crt")},
		&corev1.ServiceAccount{ObjectMeta: in("default")},
		&corev1.Secret{ObjectMeta: in("webhook-server-cert")},
		&corev1.Secret{ObjectMeta: in(MetricsToken)},
		&coordinationv1.Lease{ObjectMeta: in("dynamo.nvidia.com")},
	}
	whole := []*unstructured.Unstructured{
		shipped("Namespace", "v1", home), shipped("ConfigMap", "v1", Configuration),
		shipped("ClusterRole", "rbac.authorization.k8s.io/v1", ManagerOfCluster), shipped("Deployment", "apps/v1", Deployment),
	}
	one := slices.DeleteFunc(slices.Clone(whole), func(o *unstructured.Unstructured) bool { return o.GetKind() == "ClusterRole" })
	for rule, c := range map[string]struct {
		objects []*unstructured.Unstructured
		others  []client.Object
		// stays are kinds of which something is left in the end, and says is what is told of it.
		stays []string
		says  string
	}{
		"an empty namespace goes": {objects: whole},
		"a graph in the operator's namespace stays": {
			objects: whole, others: []client.Object{&v1alpha1.DynamoGraphDeployment{ObjectMeta: in("chat")}},
			stays: []string{"DynamoGraphDeployment", "Namespace"}, says: "namespace ops stays: DynamoGraphDeployment chat is there",
		},
		"so does a claim with a model": {
			objects: whole, others: []client.Object{&corev1.PersistentVolumeClaim{ObjectMeta: in("models")}},
			stays: []string{"Namespace", "PersistentVolumeClaim"}, says: "PersistentVolumeClaim models",
		},
		"so does a converter that others are served by": {
			objects: one, others: []client.Object{&appsv1.Deployment{ObjectMeta: in("dynamo-operator-converter")}},
			stays: []string{"Deployment", "Namespace", "ValidatingWebhookConfiguration"}, says: "Deployment dynamo-operator-converter",
		},
		"so does a Secret": {
			objects: whole, others: []client.Object{&corev1.Secret{ObjectMeta: in("hf-token-secret")}},
			stays: []string{"Namespace", "Secret"}, says: "Secret hf-token-secret",
		},
		"a pod of a Job of ours that went before is none of others": {
			objects: whole, others: []client.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: home, Name: "dynamo-operator-conversion-x", Labels: map[string]string{"app.kubernetes.io/name": "dynamo-operator-conversion"},
			}}},
		},
		"webhooks of the cluster stay with an operator for one namespace": {
			objects: one, stays: []string{"ValidatingWebhookConfiguration"},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			cluster := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(clones(always, c.others)...).Build()
			var out strings.Builder
			if err := (Installer{Client: cluster, Home: home}).Remove(t.Context(), c.objects, &out); err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, list := range []client.ObjectList{
				&v1alpha1.DynamoGraphDeploymentList{}, &corev1.PersistentVolumeClaimList{}, &corev1.NamespaceList{}, &appsv1.DeploymentList{},
				&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &corev1.SecretList{}, &coordinationv1.LeaseList{},
			} {
				if err := cluster.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				kind, err := cluster.GroupVersionKindFor(list)
				if err != nil {
					t.Fatal(err)
				}
				if meta.LenList(list) > 0 {
					left = append(left, strings.TrimSuffix(kind.Kind, "List"))
				}
			}
			slices.Sort(left)
			if diff := cmp.Diff(c.stays, left); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(out.String(), c.says) || c.says == "" && out.String() != "" {
				t.Errorf("says %q, want %q", out.String(), c.says)
			}
		})
	}
}

func clones(lists ...[]client.Object) []client.Object {
	var all []client.Object
	for _, o := range slices.Concat(lists...) {
		all = append(all, o.DeepCopyObject().(client.Object))
	}
	return all
}

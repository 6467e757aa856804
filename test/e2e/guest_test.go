package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestAPullSecretThatAppearsReachesThePods needs no change of the graph.
func TestAPullSecretThatAppearsReachesThePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	w.ready("quickstart")
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "registry"},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"https://nvcr.io/v2/":{"auth":"eDp5"}}}`)},
	})
	w.eventually("the secret in the pod template", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := w.cluster.Client.Get(ctx, w.key("quickstart-decode"), d); err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "registry" {
			return fmt.Errorf("pull secrets %v", got)
		}
		return nil
	})
}

// TestPodsThatNameNoAccountUseTheOneThatIsMeantForThem is about graphs that find
// each other without the cluster's help, and so need no account for it.
func TestPodsThatNameNoAccountUseTheOneThatIsMeantForThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: "components", Labels: map[string]string{v1alpha1.LabelComponentPod: "true"},
	}})
	w.create(&v1alpha1.DynamoComponentDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "alone"},
		Spec: v1alpha1.DynamoComponentDeploymentSpec{SharedSpec: v1alpha1.SharedSpec{
			Annotations:  map[string]string{v1alpha1.AnnotationDiscoveryBackend: v1alpha1.DiscoveryBackendEtcd},
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "dynamo-mocker:dev", Args: []string{"sleep infinity"}}},
		}},
	})
	w.eventually("the account in the pod template", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := w.cluster.Client.Get(ctx, w.key("alone"), d); err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.ServiceAccountName; got != "components" {
			return fmt.Errorf("account %q", got)
		}
		return nil
	})
}

package node

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/volume"
)

// podAPI is what workers write.
type podAPI struct{ client kubernetes.Interface }

func (a podAPI) PatchStatus(ctx context.Context, pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	return a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

func (a podAPI) Remove(ctx context.Context, pod *corev1.Pod) error {
	return a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
}

// clusterReader is what pods are filled from. It asks the API each time: a pod
// is often made right after the objects it reads, and a cache may lag behind.
type clusterReader struct{ client kubernetes.Interface }

func (r clusterReader) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	cm, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	return cm, inSingular(err, "configmap", name)
}

func (r clusterReader) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret, err := r.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	return secret, inSingular(err, "secret", name)
}

func (r clusterReader) Bound(ctx context.Context, namespace, claim string) (*corev1.PersistentVolume, error) {
	pvc, err := r.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return nil, inSingular(err, "persistentvolumeclaim", claim)
	}
	if pvc.Status.Phase != corev1.ClaimBound {
		return nil, fmt.Errorf("persistentvolumeclaim %q is not bound: its phase is %s", claim, pvc.Status.Phase)
	}
	pv, err := r.client.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	return pv, inSingular(err, "persistentvolume", pvc.Spec.VolumeName)
}

func (r clusterReader) Token(ctx context.Context, pod *corev1.Pod, p *corev1.ServiceAccountTokenProjection) (volume.Token, error) {
	issued := time.Now()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: p.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if p.Audience != "" {
		request.Spec.Audiences = []string{p.Audience}
	}
	answer, err := r.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return volume.Token{}, err
	}
	return volume.Token{Text: answer.Status.Token, Issued: issued, Expires: answer.Status.ExpirationTimestamp.Time}, nil
}

// inSingular says what is missing the way a kubelet does: configmap "x" not found.
func inSingular(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
	}
	return err
}

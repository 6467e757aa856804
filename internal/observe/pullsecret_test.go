package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
)

// TestASecretThatCannotBeReadHarmsNobody: what is in a Secret is written by
// tenants, and one of them may not spoil it for the rest.
func TestASecretThatCannotBeReadHarmsNobody(t *testing.T) {
	secret := func(name, config string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)},
		}
	}
	server := fake.NewClientBuilder().WithObjects(
		secret("good", `{"auths":{"https://nvcr.io/v2/":{"auth":"eDp5"}}}`),
		secret("also-good", `{"auths":{"nvcr.io":{},"index.docker.io":{}}}`),
		secret("noise", "\xff\x00"),
		secret("another-shape", `{"auths":["nvcr.io"]}`),
		secret("no-host", `{"auths":{"":{}}}`),
		secret("nothing", ``),
		secret("deep", `{"auths":{"https://[::1":{},"%zz":{}}}`),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "other-type"}, Data: map[string][]byte{"x": {1}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "x"}, Type: corev1.SecretTypeDockerConfigJson},
	).Build()
	got, err := Facts{Cached: server}.PullSecrets(t.Context(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	want := snapshot.PullSecrets{"nvcr.io": {"also-good", "good"}, "docker.io": {"also-good"}}
	for host, names := range want {
		if diff := cmp.Diff(names, got[host]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", host, diff)
		}
	}
	if len(got[""]) > 0 {
		t.Errorf("secrets of no registry: %v", got[""])
	}
}

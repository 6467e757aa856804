package observe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
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

// TestNoPasswordIsHeld: of a pull secret the registries are held and nothing else,
// however much of it there is, and they are found as in the whole Secret.
func TestNoPasswordIsHeld(t *testing.T) {
	const password = "eDpwYXNzd29yZA=="
	var many strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&many, `"%05d.example":{"auth":"%s"},`, i, password)
	}
	large := strings.Repeat("x", 1<<20)
	for rule, c := range map[string]struct {
		config string
		hosts  int
	}{
		"one registry":                {`{"auths":{"https://nvcr.io/v2/":{"auth":"` + password + `"}}}`, 1},
		"many":                        {`{"auths":{` + many.String() + `"z":{}}}`, mostRegistries},
		"a name that is too long":     {`{"auths":{"` + large + `":{},"nvcr.io":{}}}`, 1},
		"a large password":            {`{"auths":{"nvcr.io":{"auth":"` + password + large + `"}}}`, 1},
		"several names in one":        {`{"auths":{"a\nb":{}}}`, 0},
		"a credential that is a word": {`{"auths":{"nvcr.io":"` + password + `"}}`, 1},
		"nothing":                     {`{}`, 0},
	} {
		t.Run(rule, func(t *testing.T) {
			whole := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s", UID: "u", ResourceVersion: "1", Annotations: map[string]string{"a": large}, Labels: map[string]string{large: ""}},
				Type:       corev1.SecretTypeDockerConfigJson,
				Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(c.config), "more": []byte(large), registriesKey: []byte("forged.example")},
			}
			once, err := TrimPullSecret(whole.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			trimmed := once.(*corev1.Secret)
			if diff := cmp.Diff(hostsOf(whole), hostsOf(trimmed), cmpopts.EquateEmpty()); diff != "" || len(hostsOf(trimmed)) != c.hosts {
				t.Errorf("%d hosts (-whole +trimmed):\n%s", len(hostsOf(trimmed)), diff)
			}
			if said := trimmed.String(); trimmed.Size() > 20<<10 || strings.Contains(said, password) || strings.Contains(fmt.Sprintf("%s", trimmed.Data), password) {
				t.Errorf("%d bytes: %.200s", trimmed.Size(), said)
			}
			twice, err := TrimPullSecret(trimmed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("an informer transforms twice (-once +twice):\n%s", diff)
			}
		})
	}
}

package observe

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// TestASecretThatCannotBeReadHarmsNobody: what is in a Secret is written by
// tenants, and one of them may not spoil it for the rest.
func TestASecretThatCannotBeReadHarmsNobody(t *testing.T) {
	secret := func(name, config string) client.Object {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name)}, Type: corev1.SecretTypeDockerConfigJson,
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
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "other-type", UID: "other-type"}, Data: map[string][]byte{"x": {1}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "x"}, Type: corev1.SecretTypeDockerConfigJson},
	).Build()
	got, err := Facts{Cached: server, Direct: server}.PullSecrets(t.Context(), "lab")
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
// however much of it there is.
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
			server := fake.NewClientBuilder().WithObjects(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s", UID: "u", Annotations: map[string]string{"a": large}, Labels: map[string]string{"l": password}},
				Type:       corev1.SecretTypeDockerConfigJson,
				Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(c.config), "more": []byte(large)},
			}).Build()
			f := Facts{Cached: server, Direct: server, Registries: NewRegistries()}
			found, err := f.PullSecrets(t.Context(), "lab")
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != c.hosts {
				t.Errorf("%d registries", len(found))
			}
			if held := fmt.Sprint(f.Registries.known); len(held) > 20<<10 || strings.Contains(held, password) {
				t.Errorf("%d bytes: %.200s", len(held), held)
			}
		})
	}
}

// TestOfAPullSecretItsNameIsHeld: the informer holds what a reconcile needs in order to
// ask for the rest.
func TestOfAPullSecretItsNameIsHeld(t *testing.T) {
	large := strings.Repeat("x", 1<<18)
	once, err := TrimPullSecret(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: "s", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"a": large}, Labels: map[string]string{large: ""},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: large}}, Finalizers: []string{large},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s", UID: "u", ResourceVersion: "7"},
	}
	if diff := cmp.Diff(want, once); diff != "" {
		t.Error(diff)
	}
	twice, err := TrimPullSecret(once)
	if diff := cmp.Diff(once, twice); diff != "" || err != nil {
		t.Errorf("an informer transforms twice (-once +twice): %v\n%s", err, diff)
	}
}

// asked counts which Secrets are read.
type asked struct {
	client.Reader
	names []string
}

func (a *asked) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	a.names = append(a.names, key.Name)
	return a.Reader.Get(ctx, key, into, options...)
}

// TestAPullSecretIsReadOnceForEachVersion: a reconcile over a namespace in which nothing
// changed asks for nothing, and what is deleted is not remembered.
func TestAPullSecretIsReadOnceForEachVersion(t *testing.T) {
	secret := func(name, host string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name)}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + host + `":{}}}`)},
		}
	}
	cluster := fake.NewClientBuilder().WithObjects(secret("a", "one.example"), secret("b", "two.example")).Build()
	direct := &asked{Reader: cluster}
	f := Facts{Cached: cluster, Direct: direct, Registries: NewRegistries()}
	pass := func(want snapshot.PullSecrets, read ...string) {
		t.Helper()
		direct.names = nil
		got, err := f.PullSecrets(t.Context(), "lab")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(read, direct.names); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
	}
	both := snapshot.PullSecrets{"one.example": {"a"}, "two.example": {"b"}}
	pass(both, "a", "b")
	pass(both)
	changed := &corev1.Secret{}
	if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "lab", Name: "b"}, changed); err != nil {
		t.Fatal(err)
	}
	changed.Data = secret("b", "three.example").Data
	if err := cluster.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	pass(snapshot.PullSecrets{"one.example": {"a"}, "three.example": {"b"}}, "b")
	if err := cluster.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	f.Registries.Forget(changed.UID)
	pass(snapshot.PullSecrets{"one.example": {"a"}})
	if len(f.Registries.known) != 1 {
		t.Errorf("remembered: %v", f.Registries.known)
	}
}

// TestThePullSecretsOfANamespaceAreBounded: a tenant who has more is served by the
// first, and costs no more than those.
func TestThePullSecretsOfANamespaceAreBounded(t *testing.T) {
	var all []client.Object
	registries := NewRegistries()
	for _, prefix := range []string{"later", "earlier"} {
		for i := range mostPullSecrets {
			name := fmt.Sprintf("%s-%03d", prefix, i)
			all = append(all, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(name)}, Type: corev1.SecretTypeDockerConfigJson,
				Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"` + prefix + `.example":{}}}`)},
			})
		}
		cluster := fake.NewClientBuilder().WithObjects(all...).Build()
		direct := &asked{Reader: cluster}
		found, err := Facts{Cached: cluster, Direct: direct, Registries: registries}.PullSecrets(t.Context(), "lab")
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || len(found[prefix+".example"]) != mostPullSecrets || len(direct.names) != mostPullSecrets || len(registries.known) != mostPullSecrets {
			t.Errorf("%s: %d registries, %d read, %d remembered", prefix, len(found), len(direct.names), len(registries.known))
		}
	}
}

package activator

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typed "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// patched is an API server whose Lease takes no annotation that is longer than so many
// bytes. It keeps what it was sent and took.
func patched(t *testing.T, most int) (*KubernetesLease, *[]coordinationv1.Lease) {
	var taken []coordinationv1.Lease
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var lease coordinationv1.Lease
		if err := json.Unmarshal(text, &lease); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(text), `"annotations":null`) {
			t.Error("what others wrote is removed")
		}
		for _, value := range lease.Annotations {
			if len(value) > most {
				refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Lease"}, "chat-activation", nil).Status()
				w.WriteHeader(int(refusal.Code))
				_ = json.NewEncoder(w).Encode(refusal)
				return
			}
		}
		taken = append(taken, lease)
		_ = json.NewEncoder(w).Encode(lease)
	}))
	t.Cleanup(server.Close)
	client, err := typed.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &KubernetesLease{leases: client.Leases("lab"), name: "chat-activation", pod: "chat-frontend-0"}, &taken
}

func TestRenew(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("m", mostBytes/4)
	for rule, c := range map[string]struct {
		models []string
		most   int
		want   map[string]string
	}{
		"models and the last start are remembered": {[]string{"a", "b"}, mostBytes, map[string]string{
			v1alpha1.AnnotationActivationModels: `["a","b"]`, v1alpha1.AnnotationActivationSeconds: "2.0",
		}},
		"names that are too long together are cut": {[]string{"a", long, long, long, long, "z"}, mostBytes, map[string]string{
			v1alpha1.AnnotationActivationModels: `["a","` + long + `","` + long + `","` + long + `"]`, v1alpha1.AnnotationActivationSeconds: "2.0",
		}},
		"the time is told where nothing else fits": {[]string{"a", "b"}, 2, map[string]string{}},
	} {
		t.Run(rule, func(t *testing.T) {
			lease, taken := patched(t, c.most)
			if err := lease.Renew(t.Context(), Told{LastRequest: at, Models: c.models, Start: 2 * time.Second}); err != nil {
				t.Fatal(err)
			}
			if len(*taken) != 1 || !(*taken)[0].Spec.RenewTime.Time.Equal(at) {
				t.Fatalf("written: %v", *taken)
			}
			if diff := cmp.Diff(c.want, (*taken)[0].Annotations); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := fitting(slices.Repeat([]string{"m"}, 2*mostModels)); len(got) != mostModels {
		t.Errorf("%d models are written", len(got))
	}
}

package console

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var refused error = &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}

func TestAServerThatComesBackIsAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(3 * time.Minute)
		state := &reach{changed: func() {}}
		told := 0
		transport := observed{roundTrip(func(*http.Request) (*http.Response, error) {
			if since, _ := state.down(); !since.IsZero() {
				told++
			}
			if time.Now().Before(back) {
				return nil, refused
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}), state}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api/v1/pods?watch=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("whoever asked has to ask again, in their own time: %v", err)
		}
		defer response.Body.Close()
		if late := time.Since(back); late > retryDialled {
			t.Errorf("asked %s after it was back", late)
		}
		if since, _ := state.down(); !since.IsZero() || told == 0 {
			t.Errorf("down since %s, told %d times", since, told)
		}
	})
}

// TestARightThatIsGivenBackIsNoticedSoon: a server that has just started refuses until
// it has read its roles.
func TestARightThatIsGivenBackIsNoticedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{
			cluster: &connect.Cluster{WithWatch: fake.NewClientBuilder().WithScheme(scheme.New()).Build()}, changes: newHub(),
			standing: map[string]standing{podKind.name: {synced: func() bool { return true }, problem: forbidden(podKind, "")}},
		}
		begin := time.Now()
		s.regain(t.Context(), podKind)
		if ok, why := s.seen(podKind); !ok || time.Since(begin) > retryFailed {
			t.Errorf("%t after %s: %s", ok, time.Since(begin), why)
		}
	})
}

func TestWhatIsNotWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		failure error
		method  string
		ended   bool
	}{
		"an answer that broke off":        {failure: syscall.ECONNRESET, method: http.MethodGet},
		"a certificate that is not known": {failure: errors.New("x509: certificate signed by unknown authority"), method: http.MethodGet},
		"a request that nobody waits for": {failure: refused, method: http.MethodGet, ended: true},
		"a request that can be sent once": {failure: refused, method: http.MethodPost},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, c.method, "http://server/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if c.ended {
				cancel()
			}
			asked := 0
			transport := observed{roundTrip(func(*http.Request) (*http.Response, error) {
				asked++
				return nil, c.failure
			}), &reach{changed: func() {}}}
			if response, err := transport.RoundTrip(r); !errors.Is(err, c.failure) || asked != 1 {
				t.Errorf("asked %d times: %v, %v", asked, response, err)
			}
		})
	}
}

// TestWhoAskedIsKept though little else of objects is.
func TestWhoAskedIsKept(t *testing.T) {
	fields := func() []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: "dynamo-operator", Subresource: "status"}, {Manager: "hpa", Subresource: "scale"}}
	}
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "chat", ManagedFields: fields(), Annotations: map[string]string{lastApplied: "{}", "kept": "so"}}
	}
	component := &v1alpha1.DynamoComponentDeployment{ObjectMeta: meta()}
	component.Spec.ServiceName, component.Spec.Replicas, component.Spec.ComponentType = "decode", new(int32(3)), "worker"
	for rule, c := range map[string]struct {
		object   metav1.Object
		managers []string
	}{
		"of a graph":           {&v1alpha1.DynamoGraphDeployment{ObjectMeta: meta()}, []string{"kubectl", "hpa"}},
		"of a scaling adapter": {&v1alpha1.DynamoGraphDeploymentScalingAdapter{ObjectMeta: meta()}, []string{"kubectl", "hpa"}},
		"of nothing else":      {&v1alpha1.DynamoModel{ObjectMeta: meta()}, nil},
		"nor of a component":   {component, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			kept, err := trim(c.object)
			if err != nil {
				t.Fatal(err)
			}
			var managers []string
			for _, e := range kept.(metav1.Object).GetManagedFields() {
				managers = append(managers, e.Manager)
			}
			if diff := cmp.Diff(c.managers, managers); diff != "" || kept.(metav1.Object).GetAnnotations()[lastApplied] != "" {
				t.Errorf("%s %v", diff, kept.(metav1.Object).GetAnnotations())
			}
			if of, is := kept.(*v1alpha1.DynamoComponentDeployment); is && (of.Spec.ServiceName != "decode" || *of.Spec.Replicas != 3 || of.Spec.ComponentType != "") {
				t.Errorf("%+v", of.Spec)
			}
		})
	}
}

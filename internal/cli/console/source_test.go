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

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

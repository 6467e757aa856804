package frontend

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

// TestAWorkerIsAdmittedOnceEveryFrontendListsIt asks two frontends through a proxy, of
// which one has found fewer workers, each where it serves.
func TestAWorkerIsAdmittedOnceEveryFrontendListsIt(t *testing.T) {
	old := false
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		decode, known := map[string]int{"10.0.0.1:8001": 2, "10.0.0.2:8000": 1}[r.Host]
		switch {
		case !known:
			http.Error(w, "nobody listens there", http.StatusBadGateway)
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"org/m"}]}`)
		case old || r.URL.Path != "/v1/models/org/m/ready":
			http.Error(w, `{"message":"not found"}`, http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusServiceUnavailable) // no namespace is complete
			fmt.Fprintf(w, `{"namespaces":[{"namespace":"ns-chat-1","workers":{"decode":%d}}]}`, decode)
		}
	}))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	frontends := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.2:8000"), netip.MustParseAddrPort("10.0.0.1:8001")}
	p := NewPoller(t.Context(), at)
	answer := func(name string, frontends []netip.AddrPort) world.Admission {
		key := types.NamespacedName{Namespace: "ns", Name: name}
		if first := p.Ask(key, frontends, []string{"other"}, time.Now()); first.Known {
			t.Error("it is known before anybody has answered")
		}
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
			p.mu.Lock()
			polled := !p.graphs[key].polling
			p.mu.Unlock()
			if polled {
				return p.Ask(key, frontends, []string{"other"}, time.Now())
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("no answer")
		return world.Admission{}
	}
	want := world.Admission{Known: true, Workers: map[string]map[string]map[string]int{"org/m": {"ns-chat-1": {"decode": 1}}}}
	if diff := cmp.Diff(want, answer("chat", frontends)); diff != "" {
		t.Error("-want +got", diff)
	}
	// What the others have said stands while one comes or goes.
	key := types.NamespacedName{Namespace: "ns", Name: "chat"}
	for change, now := range map[string][]netip.AddrPort{
		"one more": append([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.3:8000")}, frontends...), "one less": frontends[:1],
	} {
		if diff := cmp.Diff(want, p.Ask(key, now, nil, time.Now())); diff != "" {
			t.Errorf("%s (-want +got) %s", change, diff)
		}
	}
	if got := p.Ask(key, []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:8000")}, nil, time.Now()); got.Known {
		t.Error("frontends that are gone were believed")
	}
	if got := answer("local", []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8000")}); got.Known {
		t.Error("an address that is no pod's was asked")
	}
	old = true
	if got := answer("older", frontends); got.Known {
		t.Error("a runtime that cannot tell was believed")
	}
}

package etcd_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/etcd"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/etcdserver"
)

func TestAddresses(t *testing.T) {
	for rule, c := range map[string]struct {
		addresses string
		ok        bool
	}{
		"a host and a port":       {"etcd.ns.svc:2379", true},
		"several, with spaces":    {"a:1, http://b:2,https://c:3", true},
		"a Unix socket":           {"unix:///run/etcd.sock", true},
		"none":                    {" , ", false},
		"another protocol":        {"ftp://a:1", false},
		"a path without a server": {"http:///v3", false},
	} {
		t.Run(rule, func(t *testing.T) {
			if _, err := etcd.New(c.addresses); (err == nil) != c.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTheNextServerIsAskedWhenOneFails(t *testing.T) {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no leader", http.StatusServiceUnavailable)
	}))
	t.Cleanup(down.Close)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"succeeded":true,"responses":[{"response_delete_range":{"deleted":"1"}},{"response_delete_range":{}}]}`))
	}))
	t.Cleanup(up.Close)
	both, err := etcd.New(down.URL + "," + strings.TrimPrefix(up.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if deleted, err := both.DeleteTree(t.Context(), "/n/components/c"); err != nil || deleted != 1 {
		t.Errorf("deleted %d, %v", deleted, err)
	}
	one, err := etcd.New(down.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.DeleteTree(t.Context(), "/n/components/c"); err == nil || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("error %v", err)
	}
}

func TestEverythingIsNeverDeleted(t *testing.T) {
	s, err := etcd.New("unix:///nowhere")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteTree(t.Context(), "/"); err == nil || !strings.Contains(err.Error(), "everything") {
		t.Errorf("error %v", err)
	}
}

// TestATreeIsDeletedFromARealServer needs the control plane's etcd.
func TestATreeIsDeletedFromARealServer(t *testing.T) {
	bin := os.Getenv("PLAYGROUND_BIN")
	if bin == "" {
		t.Skip("PLAYGROUND_BIN is not set: there is no etcd to run")
	}
	server := etcdserver.Start(t, bin)
	for _, key := range []string{
		"/ns/components/Frontend", "/ns/components/Frontend/a", "/ns/components/Frontend/b/c",
		"/ns/components/Frontend2/a", "/ns/components/decode/a", "/other/components/Frontend/a",
	} {
		server.Put(t, key)
	}
	store, err := etcd.New(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{3, 0} {
		if deleted, err := store.DeleteTree(t.Context(), etcd.Tree("ns", "Frontend")); err != nil || deleted != want {
			t.Errorf("deleted %d keys, %v, want %d", deleted, err, want)
		}
	}
	want := []string{"/ns/components/Frontend2/a", "/ns/components/decode/a", "/other/components/Frontend/a"}
	got, err := server.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

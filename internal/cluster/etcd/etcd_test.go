package etcd_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/etcd"
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
		_, _ = w.Write([]byte(`{"header":{}}`))
	}))
	t.Cleanup(up.Close)
	both, err := etcd.New(down.URL + "," + strings.TrimPrefix(up.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := both.DeleteLeft(t.Context(), "n", "c"); err != nil {
		t.Error(err)
	}
	one, err := etcd.New(down.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.DeleteLeft(t.Context(), "n", "c"); err == nil || !strings.Contains(err.Error(), "no leader") {
		t.Errorf("error %v", err)
	}
}

func TestEverythingIsNeverDeleted(t *testing.T) {
	s, err := etcd.New("unix:///nowhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range [][2]string{{"", ""}, {"n", ""}, {"", "c"}} {
		if _, err := s.DeleteLeft(t.Context(), place[0], place[1]); err == nil || !strings.Contains(err.Error(), "those of others") {
			t.Errorf("%v: error %v", place, err)
		}
	}
}

// TestWhatIsLeftIsDeletedFromARealServer needs the control plane's etcd.
func TestWhatIsLeftIsDeletedFromARealServer(t *testing.T) {
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
		if deleted, err := store.DeleteLeft(t.Context(), "ns", "Frontend"); err != nil || deleted != want {
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

// TestWhatALivingLeaseHoldsStays: it is an instance's, perhaps of another graph.
func TestWhatALivingLeaseHoldsStays(t *testing.T) {
	bin := os.Getenv("PLAYGROUND_BIN")
	if bin == "" {
		t.Skip("PLAYGROUND_BIN is not set: there is no etcd to run")
	}
	server := etcdserver.Start(t, bin)
	lease := server.Lease(t, 600)
	var want []string
	const many = 2*100 + 50 // of each sort: several pages
	for i := range many {
		held := fmt.Sprintf("/ns/components/decode/held-%03d", i)
		server.PutHeld(t, held, lease)
		want = append(want, held)
		server.Put(t, fmt.Sprintf("/ns/components/decode/left-%03d", i))
	}
	store, err := etcd.New(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	if deleted, err := store.DeleteLeft(t.Context(), "ns", "decode"); err != nil || deleted != many {
		t.Errorf("deleted %d keys, %v, want %d", deleted, err, many)
	}
	got, err := server.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

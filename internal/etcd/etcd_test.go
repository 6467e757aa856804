package etcd_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"context"
	"net"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/etcd"
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
	socket := serve(t, bin)
	put := putter(t, socket)
	for _, key := range []string{
		"/ns/components/Frontend", "/ns/components/Frontend/a", "/ns/components/Frontend/b/c",
		"/ns/components/Frontend2/a", "/ns/components/decode/a", "/other/components/Frontend/a",
	} {
		put(key)
	}
	store, err := etcd.New("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{3, 0} {
		if deleted, err := store.DeleteTree(t.Context(), etcd.Tree("ns", "Frontend")); err != nil || deleted != want {
			t.Errorf("deleted %d keys, %v, want %d", deleted, err, want)
		}
	}
	want := []string{"/ns/components/Frontend2/a", "/ns/components/decode/a", "/other/components/Frontend/a"}
	if diff := cmp.Diff(want, keys(t, socket)); diff != "" {
		t.Error(diff)
	}
}

// serve runs etcd on a socket; the folder's name is short, as sockets want it.
func serve(t *testing.T, bin string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	client, peer := "unix://"+filepath.Join(dir, "c"), "unix://p.sock"
	command := exec.Command(filepath.Join(bin, "localcluster"), "--name=one", "--data-dir="+filepath.Join(dir, "data"),
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=one="+peer,
		"--unsafe-no-fsync", "--log-level=error")
	command.Args[0] = "etcd" // the binary plays the program that it is called as
	command.Dir = dir
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	socket := filepath.Join(dir, "c")
	for deadline := time.Now().Add(2 * time.Minute); ; {
		if connection, err := net.Dial("unix", socket); err == nil {
			_ = connection.Close()
			return socket
		}
		if time.Now().After(deadline) {
			t.Fatal("etcd does not listen")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func ask(t *testing.T, socket, path string, question, answer any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post("http://localhost"+path, "application/json", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}

func putter(t *testing.T, socket string) func(key string) {
	return func(key string) {
		t.Helper()
		ask(t, socket, "/v3/kv/put", map[string]any{"key": []byte(key), "value": []byte("x")}, &struct{}{})
	}
}

func keys(t *testing.T, socket string) []string {
	t.Helper()
	var answer struct {
		KVs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	ask(t, socket, "/v3/kv/range", map[string]any{"key": []byte("/"), "range_end": []byte("0")}, &answer)
	var all []string
	for _, kv := range answer.KVs {
		all = append(all, string(kv.Key))
	}
	return all
}

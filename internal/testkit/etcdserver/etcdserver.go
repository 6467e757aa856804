// Package etcdserver runs the control plane's etcd for a test, on a socket of
// its own, so that no port is taken.
package etcdserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Server is a running etcd.
type Server struct {
	// Address is what clients are told.
	Address string

	socket string
	dir    string
	bin    string
	ended  *exec.Cmd
}

// Start runs etcd from the folder of our programs until the test ends.
func Start(t *testing.T, bin string) *Server {
	t.Helper()
	// Names of sockets must be short, which those of a test's folder are not.
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{socket: filepath.Join(dir, "c"), dir: dir, bin: bin}
	s.Address = "unix://" + s.socket
	t.Cleanup(s.Stop)
	s.Run(t)
	return s
}

// Run starts the server, again if it was stopped, and waits until it answers.
func (s *Server) Run(t *testing.T) {
	t.Helper()
	peer := "unix://p.sock" // of this URL etcd uses the host as a path
	s.ended = exec.Command(filepath.Join(s.bin, "localcluster"), "--name=one", "--data-dir="+filepath.Join(s.dir, "data"),
		"--listen-client-urls="+s.Address, "--advertise-client-urls="+s.Address,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=one="+peer,
		"--unsafe-no-fsync", "--log-level=error")
	s.ended.Args[0] = "etcd" // the binary plays the program that it is called as
	s.ended.Dir = s.dir
	said, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	s.ended.Stdout, s.ended.Stderr = said, said
	if err := s.ended.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := s.ask("/v3/kv/range", map[string]any{"key": []byte("/")}, &struct{}{})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(said.Name()) // the error says enough without it
			t.Fatalf("etcd does not answer: %v\n%s", err, text)
		}
	}
}

// Stop ends the server; its data stays.
func (s *Server) Stop() {
	_ = s.ended.Process.Kill()
	_ = s.ended.Wait()
	_ = os.Remove(s.socket)
}

// Put writes a key that nobody holds.
func (s *Server) Put(t *testing.T, key string) {
	t.Helper()
	s.PutHeld(t, key, 0)
}

// PutHeld writes a key as an instance does: it goes with the lease.
func (s *Server) PutHeld(t *testing.T, key string, lease int64) {
	t.Helper()
	question := map[string]any{"key": []byte(key), "value": []byte("x"), "lease": strconv.FormatInt(lease, 10)}
	if err := s.ask("/v3/kv/put", question, &struct{}{}); err != nil {
		t.Fatal(err)
	}
}

// Lease grants one that lives for some seconds.
func (s *Server) Lease(t *testing.T, seconds int) int64 {
	t.Helper()
	var answer struct {
		ID int64 `json:"ID,string"`
	}
	if err := s.ask("/v3/lease/grant", map[string]any{"TTL": strconv.Itoa(seconds)}, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.ID
}

// Clear removes all keys below /.
func (s *Server) Clear(t *testing.T) {
	t.Helper()
	if err := s.ask("/v3/kv/deleterange", map[string]any{"key": []byte("/"), "range_end": []byte("0")}, &struct{}{}); err != nil {
		t.Fatal(err)
	}
}

// Keys lists all keys below /.
func (s *Server) Keys() ([]string, error) {
	var answer struct {
		KVs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	err := s.ask("/v3/kv/range", map[string]any{"key": []byte("/"), "range_end": []byte("0")}, &answer)
	var all []string
	for _, kv := range answer.KVs {
		all = append(all, string(kv.Key))
	}
	return all, err
}

func (s *Server) ask(path string, question, answer any) error {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.socket)
		},
	}}
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	response, err := client.Post("http://localhost"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body) // the status says enough without it
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

package rendezvous

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// journal collects what the nodes of a test log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// world is a handful of nodes on loopback addresses of their own, each with a name.
type world struct {
	t       *testing.T
	names   sync.Map // of strings, to addresses
	journal journal
	port    int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	before := runtime.NumGoroutine()
	w := &world{t: t, port: freePort(t)}
	t.Cleanup(func() { // after all that the test itself has registered
		eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	})
	return w
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// node is node i, found as "node-i" by those that dial names.
func (w *world) node(i int) Network {
	name, address := "node-"+strconv.Itoa(i), "127.0.77."+strconv.Itoa(i+1)
	w.names.Store(name, address)
	return Network{
		Host: address, Node: name, Dial: w.dial, Log: slog.New(slog.NewTextHandler(&w.journal, nil)),
		Timeout: 5 * time.Minute, Retry: 5 * time.Millisecond, Settle: 5 * time.Millisecond,
	}
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	known, ok := w.names.Load(host)
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, net.JoinHostPort(known.(string), port))
}

// leader is how the nodes of a test call theirs.
func (w *world) leader() string { return net.JoinHostPort("node-0", strconv.Itoa(w.port)) }

// result is what came of one node's attempt to join.
type result struct {
	group *Group
	err   error
}

// join starts a node; the answer comes when its group is complete or has failed.
func (w *world) join(ctx context.Context, n Network, p Place) <-chan result {
	answer := make(chan result, 1)
	go func() {
		g, err := Meet(ctx, p, n)
		w.t.Cleanup(g.Close)
		answer <- result{g, err}
	}()
	return answer
}

func (w *world) joined(answer <-chan result) *Group {
	w.t.Helper()
	r := <-answer
	if r.err != nil {
		w.t.Fatalf("a node of a right group failed: %v", r.err)
	}
	return r.group
}

// fails waits for a node to fail and wants words in its error.
func (w *world) fails(answer <-chan result, words string) {
	w.t.Helper()
	r := <-answer
	if r.err == nil || !strings.Contains(r.err.Error(), words) {
		w.t.Fatalf("error %v, want %q", r.err, words)
	}
}

// lost waits for a group to break.
func lost(t *testing.T, g *Group, words string) {
	t.Helper()
	select {
	case err := <-g.Lost():
		if !strings.Contains(err.Error(), words) {
			t.Errorf("loss %v, want %q", err, words)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the loss of a node went unnoticed")
	}
}

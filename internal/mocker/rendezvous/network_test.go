package rendezvous

import (
	"log/slog"
	"net"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// A group of one node may name loopback as its leader, and pods of a local cluster
// listen on addresses of their own.
func TestLoopbackIsThePodItself(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(podenv.Env{"DYNAMO_LISTEN_HOST": "127.0.0.2"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "::1"} {
		conn, err := n.Dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		_ = conn.Close()
	}
}

package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// How long a forward may be idle, and how long its streams may take to open; the
// kubelet's values.
const (
	idleTimeout     = 4 * time.Hour
	creationTimeout = 30 * time.Second
)

// portForward carries connections to a pod's ports.
func portForward(pods Pods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		namespace, pod := r.PathValue("namespace"), r.PathValue("pod")
		host, err := pods.Host(namespace, pod)
		if err != nil {
			fail(w, err)
			return
		}
		opts, err := portforward.NewV4Options(r)
		if err != nil {
			fail(w, err)
			return
		}
		portforward.ServePortForward(w, r, forwarder{host}, pod, r.PathValue("uid"), opts, idleTimeout, creationTimeout, portforward.SupportedProtocols)
	})
}

type forwarder struct{ host string }

// PortForward copies until both sides have said all, or one is cut off.
func (f forwarder) PortForward(ctx context.Context, pod, _ string, port int32, stream io.ReadWriteCloser) error {
	defer func() { _ = stream.Close() }()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(f.host, strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("forward to port %d of pod %s: %w", port, pod, err)
	}
	defer func() { _ = conn.Close() }()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}

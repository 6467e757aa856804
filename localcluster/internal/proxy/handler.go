package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"time"
)

const dialTimeout = 5 * time.Second

// NewHandler serves CONNECT for anything over TCP and absolute URIs for plain HTTP.
func NewHandler(resolver *Resolver) http.Handler {
	h := &handler{resolver: resolver}
	h.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Host = r.In.URL.Host
			r.Out.Host = r.In.Host
		},
		Transport: &http.Transport{
			DialContext: h.dial,
			// A kept connection would pin a Service's name to one of its pods, even after that pod has gone.
			DisableKeepAlives:  true,
			DisableCompression: true,
		},
		FlushInterval: -1, // streamed tokens must not wait for a full buffer
		ErrorHandler:  refuse,
		ErrorLog:      slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	return h
}

type handler struct {
	resolver *Resolver
	forward  *httputil.ReverseProxy
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		h.tunnel(w, r)
	case r.URL.Scheme == "http":
		if r.URL.Port() == "" {
			r.URL.Host = net.JoinHostPort(r.URL.Hostname(), "80")
		}
		h.forward.ServeHTTP(w, r)
	case r.URL.Scheme == "" && r.URL.Path == "/healthz":
		fmt.Fprintln(w, "ok")
	default:
		http.Error(w, "this is a forward proxy: send CONNECT, or GET http://service.namespace/...", http.StatusBadRequest)
	}
}

// dial connects to the first address that answers.
func (h *handler) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	addresses, err := h.resolver.Resolve(hostport)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	var failures []error
	for _, address := range addresses {
		conn, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, fmt.Errorf("connect to %s: %w", hostport, errors.Join(failures...))
}

func (h *handler) tunnel(w http.ResponseWriter, r *http.Request) {
	server, err := h.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		refuse(w, r, err)
		return
	}
	defer func() { _ = server.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, r, fmt.Errorf("take over connection: %w", err))
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}

	up := make(chan struct{})
	go func() {
		defer close(up)
		// What the client sent right behind its request is in the buffer already.
		if early, _ := buffered.Reader.Peek(buffered.Reader.Buffered()); len(early) > 0 {
			if _, err := server.Write(early); err != nil {
				return
			}
		}
		pipe(server, client)
	}()
	pipe(client, server)
	<-up
}

// pipe copies one direction and passes its end on, leaving the other direction open. Why it ended is of no use to
// either side: both see their connection close.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	} else {
		_ = to.Close()
	}
}

func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	status := http.StatusBadGateway
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		status = refusal.Status
	} else {
		// RFC 9209: the address leads somewhere, only nobody answers there. Who plays DNS must tell the two apart.
		w.Header().Set("Proxy-Status", "localcluster; error=connection_refused")
	}
	http.Error(w, err.Error(), status)
}

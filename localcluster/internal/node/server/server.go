// Package server is the kubelet's HTTP API, as far as kube-apiserver asks for it
// here: logs and port-forward. One server stands for all nodes.
//
// It lets in whoever has a client certificate of the cluster, and asks no
// further. It refuses to run anything: exec and attach get an answer that says
// why.
package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/klog/v2"
)

// Pods is where the server finds what it is asked for.
type Pods interface {
	// Log is the file of a container's log, and whether it still grows.
	Log(namespace, pod, container string, previous bool) (path string, running func() bool, err error)
	// Host is where a pod's processes listen.
	Host(namespace, pod string) (string, error)
}

// NotFoundError is the answer of Pods for a pod that is not on its nodes.
type NotFoundError struct{ Namespace, Pod string }

func (e NotFoundError) Error() string {
	return fmt.Sprintf("pod %s/%s is not on this node", e.Namespace, e.Pod)
}

// TLS is the files that the server proves itself with, and those it checks
// clients against.
type TLS struct {
	Cert, Key, ClientCA string
}

// Run serves until ctx ends.
func Run(ctx context.Context, address string, files TLS, pods Pods) error {
	config, err := files.load()
	if err != nil {
		return fmt.Errorf("serve the kubelet API: %w", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve the kubelet API: %w", err)
	}
	srv := &http.Server{
		Handler:           Handler(pods),
		TLSConfig:         config,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() {
		<-ctx.Done()
		_ = srv.Close() // streams have no end of their own to wait for
	}()
	if err := srv.ServeTLS(listener, "", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the kubelet API: %w", err)
	}
	return nil
}

func (f TLS) load() (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("load the serving certificate: %w", err)
	}
	ca, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("load the client CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("load the client CA: no certificate in %s", f.ClientCA)
	}
	// A client without a certificate may still ask for /healthz.
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12}, nil
}

// Handler is the API without its transport.
func Handler(pods Pods) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.Handle("GET /containerLogs/{namespace}/{pod}/{container}", known(logs(pods)))
	mux.Handle("/portForward/{namespace}/{pod}", known(portForward(pods)))
	mux.Handle("/portForward/{namespace}/{pod}/{uid}", known(portForward(pods)))
	for _, path := range []string{"/exec/", "/attach/", "/run/"} {
		mux.Handle(path, known(http.HandlerFunc(refuse)))
	}
	return mux
}

// known lets through only clients with a certificate.
func known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "a client certificate of the cluster is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "the local cluster plays containers by simulated processes: there is nothing to exec into or to attach to", http.StatusNotImplemented)
}

// fail answers with an error of Pods.
func fail(w http.ResponseWriter, err error) {
	code := http.StatusBadRequest
	if _, ok := errors.AsType[NotFoundError](err); ok {
		code = http.StatusNotFound
	}
	klog.V(4).InfoS("Kubelet API refuses", "code", code, "err", err)
	http.Error(w, err.Error(), code)
}

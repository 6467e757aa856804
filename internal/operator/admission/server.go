package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// Server answers the API server, on every replica.
type Server struct {
	Address string
	// Certificate is asked for each connection, so a new one needs no restart.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// HTTP2 is off unless asked for: it buys nothing here, and a client could
	// open streams without end.
	HTTP2 bool
	// ConversionOnly is a server that judges nothing.
	ConversionOnly bool
	Scope          validation.Scope
	// Operator is the operator's own user.
	Operator     string
	Capabilities Capabilities
	// Drain is how long requests are taken after the end was announced: so long
	// does it take until nobody is sent here any more.
	Drain time.Duration
	// AnswerTimeout is how long the last requests may take after that.
	AnswerTimeout time.Duration
	Clock         clock.WithTicker

	listening atomic.Pointer[net.TCPAddr]
	leaving   atomic.Bool
	open      sync.WaitGroup
}

// NeedLeaderElection is false: every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// Listening is the address that is listened on; nil before.
func (s *Server) Listening() *net.TCPAddr { return s.listening.Load() }

// Start serves until ctx ends. Requests are answered for a while after that:
// nothing else has to wait for it, but the process does, by Wait.
func (s *Server) Start(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen for webhooks: %w", err)
	}
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		s.listening.Store(address)
	}
	server := &http.Server{
		Handler:           s.closeConnections(s.Mux()),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(tls.NewListener(listener, s.TLS())) }()
	log.FromContext(ctx).Info("serving webhooks", "address", listener.Addr().String())
	select {
	case err := <-failed:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
		s.leaving.Store(true)
		s.open.Go(func() { s.drain(context.WithoutCancel(ctx), server) })
		return nil
	}
}

func (s *Server) drain(ctx context.Context, server *http.Server) {
	<-s.Clock.After(s.Drain)
	ctx, cancel := context.WithTimeout(ctx, s.AnswerTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		log.FromContext(ctx).Error(err, "webhook server shutdown failed")
	}
}

// closeConnections has callers of a server that is about to end call elsewhere next
// time: a connection that is closed while a request is under way would fail it.
func (s *Server) closeConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Wait returns when a server whose Start returned has answered its last request.
func (s *Server) Wait() { s.open.Wait() }

// TLS is how the server speaks.
func (s *Server) TLS() *tls.Config {
	protocols := []string{"http/1.1"}
	if s.HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	return &tls.Config{GetCertificate: s.Certificate, MinVersion: tls.VersionTLS12, NextProtos: protocols}
}

// Mux has a path for each kind, and one for conversion. Sizes are bounded there:
// two objects at most for a kind, each no larger than the API server takes, and a
// long list for conversion.
func (s *Server) Mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle(ConvertPath, Converter{})
	if s.ConversionOnly {
		return mux
	}
	for _, kind := range Kinds {
		handler := measured(kind, Handler{Kind: kind, Scope: s.Scope, Operator: s.Operator, Capabilities: s.Capabilities})
		mux.Handle(kind.Path(), &ctrladmission.Webhook{Handler: handler, RecoverPanic: new(true)})
	}
	return mux
}

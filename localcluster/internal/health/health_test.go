package health

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

func TestOnly200IsWell(t *testing.T) {
	for status, well := range map[int]bool{200: true, 204: false, 404: false, 500: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if err := HTTP(server.URL)(t.Context()); (err == nil) != well {
			t.Errorf("status %d: %v, want well: %v", status, err, well)
		}
		server.Close()
	}
}

func TestUnixAsksOverTheSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	if err := Unix(socket, "/health")(t.Context()); err == nil {
		t.Error("a socket that does not exist is well")
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			http.NotFound(w, r)
		}
	})}
	go server.Serve(listener)
	defer server.Close()
	if err := Unix(socket, "/health")(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWaitReturnsTheLastAnswer(t *testing.T) {
	ill := errors.New("ill")
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := Wait(ctx, func(context.Context) error {
		asked++
		if asked == 3 {
			cancel()
		}
		return ill
	})
	if !errors.Is(err, ill) || !errors.Is(err, context.Canceled) || asked != 3 {
		t.Errorf("Wait = %v after %d answers", err, asked)
	}
	if err := Wait(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}

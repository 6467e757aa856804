package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestStream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, ok := Read(w, r)
		if !ok {
			return
		}
		switch request.Model {
		case "leaving":
			http.Error(w, "draining", http.StatusServiceUnavailable)
		case "broken":
			_ = NewWriter(w).Send(Chunk{Text: "a", Tokens: 1})
		default:
			out := NewWriter(w)
			_ = out.Send(Chunk{Text: "a", Tokens: 1})
			_ = out.Send(Chunk{Text: "b", Tokens: 1, FinishReason: "length"})
		}
	}))
	defer server.Close()
	client, err := NewClient("")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.Call(t.Context(), server.URL, Request{Model: "good"})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	text := ""
	for {
		chunk, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text += chunk.Text
	}
	if text != "ab" {
		t.Errorf("streamed %q, want ab", text)
	}
	if _, err := client.Call(t.Context(), server.URL, Request{Model: "leaving"}); !errors.Is(err, ErrNotAccepted) {
		t.Errorf("a leaving worker: %v, want ErrNotAccepted", err)
	}
	broken, err := client.Call(t.Context(), server.URL, Request{Model: "broken"})
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	if _, err := broken.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := broken.Next(); !errors.Is(err, ErrBroken) {
		t.Errorf("a stream without an end: %v, want ErrBroken", err)
	}
	if _, err := client.Call(t.Context(), "http://127.0.0.1:1/", Request{}); !errors.Is(err, ErrNotAccepted) {
		t.Errorf("nobody there: %v, want ErrNotAccepted", err)
	}
}

// proxy tunnels every address to one server, or refuses.
func proxy(t *testing.T, target string, refuse bool) (string, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	tunnels := &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				reader := bufio.NewReader(conn)
				request, err := http.ReadRequest(reader)
				if err != nil || request.Method != http.MethodConnect || refuse {
					_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
					return
				}
				tunnels.Add(1)
				upstream, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer upstream.Close()
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
				go func() { _, _ = io.Copy(upstream, reader) }()
				_, _ = io.Copy(conn, upstream)
			}()
		}
	}()
	return "http://" + listener.Addr().String(), tunnels
}

func TestPodsAreReachedThroughTheProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = NewWriter(w).Send(Chunk{FinishReason: "stop"})
	}))
	defer server.Close()
	target := strings.TrimPrefix(server.URL, "http://")
	address, tunnels := proxy(t, target, false)
	client, err := NewClient(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://10.16.0.2:8888/v1/rpc/generate", server.URL} {
		stream, err := client.Call(t.Context(), url, Request{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Next(); err != nil {
			t.Error(err)
		}
		stream.Close()
	}
	if got := tunnels.Load(); got != 1 {
		t.Errorf("%d tunnels, want 1: loopback needs none", got)
	}
	refusing, _ := proxy(t, target, true)
	if client, err = NewClient(refusing); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := client.Call(ctx, "http://10.16.0.2:8888/", Request{}); !errors.Is(err, ErrNotAccepted) {
		t.Errorf("a refused tunnel: %v, want ErrNotAccepted", err)
	}
	if _, err := NewClient("not a url"); err == nil {
		t.Error("a proxy that is no URL was accepted")
	}
}

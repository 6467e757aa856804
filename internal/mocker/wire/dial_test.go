package wire

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// proxyAnswering is a forward proxy that always answers in the same way.
func proxyAnswering(t *testing.T, answer string) DialFunc {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				fmt.Fprint(conn, answer)
			}
			_ = conn.Close()
		}
	}()
	dial, err := NewDialer("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return dial
}

func TestATunnelLosesNothingOfAServerThatSpeaksFirst(t *testing.T) {
	dial := proxyAnswering(t, "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n")
	conn, err := dial(t.Context(), "tcp", "worker.ns:2222")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "SSH-2.0-x\r\n" {
		t.Errorf("read %q, %v", line, err)
	}
}

func TestNameUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   bool
	}{
		"a name that the proxy does not know": {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nnone", true},
		"a name of the world outside":         {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", true},
		"a name that nobody listens behind":   {"HTTP/1.1 502 Bad Gateway\r\nProxy-Status: localcluster; error=connection_refused\r\nContent-Length: 0\r\n\r\n", false},
		"a proxy that breaks off":             {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := proxyAnswering(t, c.answer)(t.Context(), "tcp", "x.ns:1")
			if err == nil || NameUnknown(err) != c.want {
				t.Errorf("NameUnknown(%v) = %v", err, !c.want)
			}
		})
	}
}

func TestAskingAProxyEndsWithTheContext(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	dial, err := NewDialer(silent.URL)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may take longer than asking does by itself, but not each time.
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start := time.Now()
		_, err := dial(ctx, "tcp", "x.ns:1")
		took := time.Since(start)
		cancel()
		if err != nil && took < connectTimeout {
			return
		}
		if try == 5 {
			t.Fatalf("%v after %s", err, took)
		}
	}
}

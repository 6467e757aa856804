package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// serve starts a proxy in front of an engine that listens where the pod 10.20.0.9 would, behind Service llm/engine.
func serve(t *testing.T, engine http.Handler) (proxy *url.URL) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.20.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: engine}}
	server.Start()
	t.Cleanup(server.Close)

	r := world(t)
	target := int32(listener.Addr().(*net.TCPAddr).Port)
	if err := r.Services.Add(service("llm", "engine", "10.20.192.20", corev1.ServicePort{Name: "http", Port: 80})); err != nil {
		t.Fatal(err)
	}
	// A dead endpoint beside the live one: whoever comes first must not be unlucky.
	dead := discoveryv1.Endpoint{Addresses: []string{"10.20.0.10"}}
	if err := r.Slices.Add(slice("llm", "engine", "a", port("http", target), pod("10.20.0.9"), dead)); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(NewHandler(r))
	t.Cleanup(front.Close)
	proxy, err = url.Parse(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	return proxy
}

func through(proxy *url.URL) *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
}

func TestPlainRequestsReachAServiceUnchanged(t *testing.T) {
	client := through(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.URL, body)
	})))
	for range 5 {
		response, err := client.Post("http://engine.llm/v1/chat?a=1", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if got, want := string(body), "POST engine.llm /v1/chat?a=1 hello"; got != want {
			t.Fatalf("engine saw %q, want %q", got, want)
		}
	}
}

func TestStreamsAreNotHeldBack(t *testing.T) {
	next := make(chan string)
	client := through(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for event := range next {
			fmt.Fprintf(w, "data: %s\n", event)
			http.NewResponseController(w).Flush()
		}
	})))
	go func() { next <- "one" }()
	response, err := client.Get("http://engine.llm/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	// Each event is sent only after the one before has arrived.
	lines := bufio.NewScanner(response.Body)
	for _, want := range []string{"one", "two", "three"} {
		if want != "one" {
			next <- want
		}
		if !lines.Scan() || lines.Text() != "data: "+want {
			t.Fatalf("read %q, want event %q", lines.Text(), want)
		}
	}
	close(next)
}

// upgrade answers like a WebSocket server and then echoes lines.
var upgrade = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "echo" {
		http.Error(w, "not an upgrade", http.StatusBadRequest)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	io.Copy(conn, buffered)
})

func TestUpgradedConnectionsPass(t *testing.T) {
	for name, opening := range map[string]string{
		"by absolute URI": "GET http://engine.llm/ws HTTP/1.1\r\nHost: engine.llm\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
		"by tunnel": "CONNECT engine.llm:80 HTTP/1.1\r\nHost: engine.llm:80\r\n\r\n" +
			"GET /ws HTTP/1.1\r\nHost: engine.llm\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", serve(t, upgrade).Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, opening)
			reader := bufio.NewReader(conn)
			if strings.HasPrefix(opening, "CONNECT") {
				response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
				if err != nil || response.StatusCode != http.StatusOK {
					t.Fatalf("tunnel: %v, %v", response, err)
				}
			}
			response, err := http.ReadResponse(reader, nil)
			if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("upgrade: %v, %v", response, err)
			}
			for _, line := range []string{"ping\n", "pong\n"} {
				io.WriteString(conn, line)
				if got, err := reader.ReadString('\n'); got != line {
					t.Fatalf("echo of %q = %q, %v", line, got, err)
				}
			}
		})
	}
}

func TestRefusalsHaveAStatus(t *testing.T) {
	client := through(serve(t, http.NotFoundHandler()))
	for address, want := range map[string]struct {
		status int
		reason string
	}{
		"http://www.example.com/": {http.StatusForbidden, ""},
		"http://ghost.llm/":       {http.StatusBadGateway, ""},
		"http://10.20.100.1:1/":   {http.StatusBadGateway, "localcluster; error=connection_refused"}, // nothing listens there
	} {
		response, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if reason := response.Header.Get("Proxy-Status"); response.StatusCode != want.status || reason != want.reason {
			t.Errorf("GET %s: %s, %q, want %d, %q", address, response.Status, reason, want.status, want.reason)
		}
	}
}

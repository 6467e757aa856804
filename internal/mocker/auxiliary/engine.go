package auxiliary

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
)

// Description is what an engine tells its sidecar of itself, once, as one line
// of JSON: the sidecar then plays the worker, for the engine has no part in a
// graph by itself.
type Description struct {
	Backend string   `json:"backend"`
	Args    []string `json:"args"`
}

// Engine plays an engine's own server: it answers health checks on its HTTP port
// and describes itself on its gRPC port. It serves no requests.
func Engine(ctx context.Context, p launch.Program, log *slog.Logger) int {
	s := p.Settings()
	web, control := s.Int(0, "--port"), s.Int(0, "--grpc-port")
	if s.Err != nil {
		log.Error("engine", "error", s.Err)
		return 2
	}
	if control != 0 {
		listener, err := net.Listen("tcp", p.Env.Listen(control))
		if err != nil {
			log.Error("engine cannot listen", "error", err)
			return 1
		}
		defer listener.Close()
		go describe(ctx, listener, Description{Backend: p.Name, Args: p.Args})
	}
	if web == 0 {
		return Idle(ctx, p, log)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	return serve(ctx, p.Env.Listen(web), mux, log)
}

// describe tells everybody who calls, and stays on the line: that it breaks
// tells a sidecar of the engine's end.
func describe(ctx context.Context, listener net.Listener, d Description) {
	line, err := json.Marshal(d)
	if err != nil {
		return // of strings alone
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		_, _ = conn.Write(append(line, '\n'))
		context.AfterFunc(ctx, func() { _ = conn.Close() })
	}
}

// sidecarPause is how often a sidecar looks for its engine.
const sidecarPause = 500 * time.Millisecond

// Attach waits for the engine at an address and returns what it says of itself,
// and a channel that ends with it.
func Attach(ctx context.Context, address string, dial func(ctx context.Context, address string) (net.Conn, error), log *slog.Logger) (Description, <-chan struct{}, error) {
	var d Description
	for told := ""; ; {
		conn, err := dial(ctx, address)
		if err == nil {
			reader := bufio.NewReader(conn)
			hangUp := context.AfterFunc(ctx, func() { _ = conn.Close() })
			var line []byte
			if line, err = reader.ReadBytes('\n'); err == nil {
				err = json.Unmarshal(line, &d)
			}
			hangUp()
			if err == nil {
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					_, _ = reader.ReadByte() // it has nothing more to say; this ends with it
					_ = conn.Close()
				}()
				return d, gone, nil
			}
			_ = conn.Close()
		}
		if err.Error() != told {
			told = err.Error()
			log.Info("waiting for the engine", "address", address, "because", err)
		}
		select {
		case <-time.After(sidecarPause):
		case <-ctx.Done():
			return d, nil, fmt.Errorf("reach the engine at %s: %w: %s", address, context.Cause(ctx), told)
		}
	}
}

package worker

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// openPorts opens what an engine of 1.x listens on beside its status and its
// requests: the side channel of its KV transfers, and NIXL's telemetry if it is
// switched on. Nobody speaks on the side channel here; that the port is there,
// and is nobody else's, is what matters.
func (w *Worker) openPorts() (func(), error) {
	var servers []*http.Server
	closing := func() {
		for _, s := range servers {
			_ = s.Close()
		}
	}
	open := func(port int, variable string, handler http.Handler) error {
		listener, err := net.Listen("tcp", w.env.Listen(port))
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("port %d is taken: another engine of the pod needs its own, in %s: %w", port, variable, err)
		}
		if err != nil {
			return err
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		servers = append(servers, server)
		go func() { _ = server.Serve(listener) }() // ends with Close, above
		return nil
	}
	if w.config.SideChannel > 0 {
		if err := open(w.config.SideChannel, "VLLM_NIXL_SIDE_CHANNEL_PORT", http.NotFoundHandler()); err != nil {
			return closing, err
		}
	}
	port, err := w.env.Int("NIXL_TELEMETRY_PROMETHEUS_PORT", 0)
	if err == nil && port > 0 && w.env["NIXL_TELEMETRY_ENABLE"] == "y" {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.NewRegistry(), promhttp.HandlerOpts{}))
		err = open(port, "NIXL_TELEMETRY_PROMETHEUS_PORT", mux)
	}
	return closing, err
}

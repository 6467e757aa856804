// Package auxiliary plays the components of a graph that serve no requests: the
// planner, the endpoint picker, and programs that merely stay up. Each answers its
// probes and scrapers, and decides nothing.
package auxiliary

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
)

// Idle waits for the end.
func Idle(ctx context.Context, p launch.Program, log *slog.Logger) int {
	log.Info("idling", "program", p.Name, "kind", p.Kind)
	<-ctx.Done()
	return 0
}

// plannerGauges are a planner's series; without decisions they stay at zero.
var plannerGauges = []string{
	"num_p_workers", "num_d_workers", "observed_ttft", "observed_itl", "observed_request_rate", "observed_request_duration",
	"observed_isl", "observed_osl", "p_correction_factor", "d_correction_factor", "predicted_request_rate", "predicted_isl",
	"predicted_osl", "predicted_num_p", "predicted_num_d", "gpu_hours",
}

// Planner serves its metrics. It never scales anything.
func Planner(ctx context.Context, p launch.Program, log *slog.Logger) int {
	port, err := p.Env.Int("PLANNER_PROMETHEUS_PORT", 0)
	if err == nil {
		port, err = commandline.NewLooseArgs(p.Args).Int(port, "--metric-reporting-prometheus-port", "--prometheus-port")
	}
	if err != nil {
		log.Error("planner", "error", err)
		return 2
	}
	if port == 0 {
		return Idle(ctx, p, log)
	}
	registry := prometheus.NewRegistry()
	for _, name := range plannerGauges {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "planner:" + name, Help: "Always zero: this planner takes no decisions."}))
	}
	return serve(ctx, p.Env.Listen(port), metricsMux(registry), log)
}

func metricsMux(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// serve answers HTTP until ctx ends.
func serve(ctx context.Context, address string, handler http.Handler, log *slog.Logger) int {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Error("cannot listen", "error", err)
		return 1
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { <-ctx.Done(); _ = server.Close() }()
	log.Info("serving", "address", listener.Addr().String())
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		log.Error("serving failed", "error", err)
		return 1
	}
	return 0
}

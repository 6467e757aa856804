// Package auxiliary plays the components of a graph that serve no requests: the
// planner, the endpoint picker, and programs that merely stay up. Each answers its
// probes and scrapers, and decides nothing.
package auxiliary

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
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

// Planner serves its metrics and answers its probes. It never scales anything.
func Planner(ctx context.Context, p launch.Program, log *slog.Logger) int {
	port, err := metricsPort(p, log)
	if err != nil {
		log.Error("planner", "error", err)
		return 2
	}
	stop, err := Status(p.Env, log)
	if err != nil {
		log.Error("planner", "error", err)
		return 1
	}
	defer stop()
	if port == 0 {
		return Idle(ctx, p, log)
	}
	registry := prometheus.NewRegistry()
	for _, name := range plannerGauges {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "planner:" + name, Help: "Always zero: this planner takes no decisions."}))
	}
	return serve(ctx, p.Env.Listen(port), metricsMux(registry), log)
}

// metricsPort reads it from the environment, the flags of the first planners or
// the configuration of later ones, which is JSON or YAML, as text or in a file.
func metricsPort(p launch.Program, log *slog.Logger) (int, error) {
	args := commandline.NewLooseArgs(p.Args)
	port, err := p.Env.Int("PLANNER_PROMETHEUS_PORT", 0)
	if err != nil {
		return 0, err
	}
	if text, ok := args.Value("--config"); ok && p.Name != "dynamo.global_planner" {
		var config struct {
			Port *int `json:"metric_reporting_prometheus_port"`
		}
		body := []byte(text)
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			if body, err = os.ReadFile(text); err != nil {
				log.Warn("a planner's configuration that is in its image alone is not known here", "error", err)
			}
		}
		if err := yaml.Unmarshal(body, &config); err != nil {
			return 0, fmt.Errorf("argument --config: %w", err)
		}
		if config.Port != nil {
			port = *config.Port
		}
	}
	return args.Int(port, "--metric-reporting-prometheus-port", "--prometheus-port")
}

// Status answers the probes of a component whose only duty is to be there, on
// the system port; without one it does nothing.
func Status(env podenv.Env, log *slog.Logger) (stop func(), err error) {
	well := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"ready"}`)) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+env.String("/health", "DYN_SYSTEM_HEALTH_PATH"), well)
	mux.HandleFunc("GET "+env.String("/live", "DYN_SYSTEM_LIVE_PATH"), well)
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.NewRegistry(), promhttp.HandlerOpts{}))
	return ServeStatus(env, mux, log)
}

// ServeStatus answers on the system port; without one it does nothing.
func ServeStatus(env podenv.Env, handler http.Handler, log *slog.Logger) (stop func(), err error) {
	port, err := env.Int("DYN_SYSTEM_PORT", -1)
	if err != nil || port < 0 {
		return func() {}, err
	}
	listener, err := net.Listen("tcp", env.Listen(port))
	if err != nil {
		return nil, fmt.Errorf("listen on system port %d: %w", port, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with stop
	log.Info("system status server", "address", listener.Addr().String())
	return func() { _ = server.Close() }, nil
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

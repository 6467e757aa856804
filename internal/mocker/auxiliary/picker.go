package auxiliary

import (
	"context"
	"log/slog"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
)

// pickerService is the name the endpoint picker is probed under.
const pickerService = "inference-extension"

// EndpointPicker answers gRPC health checks. Its own port is open but offers
// no service: no gateway calls it here.
func EndpointPicker(ctx context.Context, p launch.Program, log *slog.Logger) int {
	s := launch.Settings{Args: commandline.NewArgs(p.Args)}
	probes := []int{s.Int(9003, "-grpc-health-port", "--grpc-health-port"), s.Int(9002, "-grpc-port", "--grpc-port")}
	metrics := s.Int(9090, "-metrics-port", "--metrics-port")
	if s.Err != nil {
		log.Error("endpoint picker", "error", s.Err)
		return 2
	}
	status := health.NewServer()
	for _, service := range []string{"", pickerService} {
		status.SetServingStatus(service, healthpb.HealthCheckResponse_SERVING)
	}
	for _, port := range probes {
		listener, err := net.Listen("tcp", p.Env.Listen(port))
		if err != nil {
			log.Error("endpoint picker cannot listen", "error", err)
			return 1
		}
		server := grpc.NewServer()
		healthpb.RegisterHealthServer(server, status)
		go func() { _ = server.Serve(listener) }() // ends with Stop, below
		defer server.Stop()                        //nolint:gocritic // two servers, both for as long as this function runs
	}
	return serve(ctx, p.Env.Listen(metrics), metricsMux(prometheus.NewRegistry()), log)
}

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
	args := commandline.NewArgs(p.Args)
	var errs [3]error
	var ports [3]int
	ports[0], errs[0] = args.Int(9003, "-grpc-health-port", "--grpc-health-port")
	ports[1], errs[1] = args.Int(9002, "-grpc-port", "--grpc-port")
	ports[2], errs[2] = args.Int(9090, "-metrics-port", "--metrics-port")
	for _, err := range errs {
		if err != nil {
			log.Error("endpoint picker", "error", err)
			return 2
		}
	}
	status := health.NewServer()
	for _, service := range []string{"", pickerService} {
		status.SetServingStatus(service, healthpb.HealthCheckResponse_SERVING)
	}
	for _, port := range ports[:2] {
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
	return serve(ctx, p.Env.Listen(ports[2]), metricsMux(prometheus.NewRegistry()), log)
}

package auxiliary

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

var quiet = slog.New(slog.DiscardHandler)

// host is an address of this process, so that a port that was free is still free
// a moment later. Local clusters have those from 127.16 on.
var host = fmt.Sprintf("127.%d.%d.1", 1+os.Getpid()%15, os.Getpid()/15%256)

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// play runs a part until the test ends and checks that it then ends well.
func play(t *testing.T, part func(context.Context, launch.Program, *slog.Logger) int, p launch.Program) {
	t.Helper()
	p.Env["DYNAMO_LISTEN_HOST"] = host
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- part(ctx, p, quiet) }()
	t.Cleanup(func() {
		cancel()
		if status := <-ended; status != 0 {
			t.Errorf("%s ended with %d", p.Name, status)
		}
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestPlannerServesItsMetrics(t *testing.T) {
	port := freePort(t)
	play(t, Planner, launch.Program{Name: "planner_sla", Env: podenv.Env{"PLANNER_PROMETHEUS_PORT": strconv.Itoa(port)}})
	eventually(t, "metrics", func() bool {
		response, err := http.Get(fmt.Sprintf("http://%s:%d/metrics", host, port))
		if err != nil {
			return false
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return strings.Contains(string(body), "planner:num_p_workers 0") && strings.Contains(string(body), "planner:gpu_hours 0")
	})
}

func TestPlannersOf1xAnswerTheirProbes(t *testing.T) {
	metrics, system := freePort(t), freePort(t)
	for name, p := range map[string]launch.Program{
		"a planner's port is in its configuration": {Name: "dynamo.planner", Args: []string{"--config", fmt.Sprintf(`{"environment":"kubernetes","metric_reporting_prometheus_port":%d}`, metrics)}},
		"a global planner has probes alone":        {Name: "dynamo.global_planner", Args: []string{"--no-operation", "--managed-namespaces", "a", "b"}},
		"a configuration of the image is unknown":  {Name: "dynamo.planner", Args: []string{"--config", "/workspace/planner.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			p.Env = podenv.Env{"DYN_SYSTEM_PORT": strconv.Itoa(system)}
			play(t, Planner, p)
			for _, path := range []string{"/live", "/health"} {
				eventually(t, path, func() bool { return answers(fmt.Sprintf("http://%s:%d%s", host, system, path)) })
			}
			if strings.Contains(p.Args[1], "prometheus") {
				eventually(t, "metrics", func() bool { return answers(fmt.Sprintf("http://%s:%d/metrics", host, metrics)) })
			}
		})
	}
}

func TestAPlannerRefusesAConfigurationThatIsNone(t *testing.T) {
	p := launch.Program{Name: "dynamo.planner", Args: []string{"--config", "{environment: ["}, Env: podenv.Env{}}
	if status := Planner(t.Context(), p, quiet); status != 2 {
		t.Errorf("status %d", status)
	}
}

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func TestEndpointPickerIsHealthy(t *testing.T) {
	health, own, metrics := freePort(t), freePort(t), freePort(t)
	play(t, EndpointPicker, launch.Program{Name: "epp", Env: podenv.Env{}, Args: []string{
		"-v", "4", "-grpc-port", strconv.Itoa(own), "-grpc-health-port", strconv.Itoa(health), "-metrics-port", strconv.Itoa(metrics),
	}})
	conn, err := grpc.NewClient(fmt.Sprintf("%s:%d", host, health), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, "serving", func() bool {
		answer, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "inference-extension"})
		return err == nil && answer.Status == healthpb.HealthCheckResponse_SERVING
	})
}

func TestIdleEndsWithTheContainer(t *testing.T) {
	play(t, Idle, launch.Program{Name: "x", Env: podenv.Env{}})
}

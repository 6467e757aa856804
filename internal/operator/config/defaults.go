package config

import (
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// Default is the configuration of an operator that was told nothing.
func Default() Config {
	const day = 24 * time.Hour
	return Config{
		APIVersion: APIVersion, Kind: Kind,
		API:       API{V1beta1: Version{Enabled: true}},
		Discovery: Discovery{Backend: graph.DiscoveryKubernetes, CleanupDeadline: period(time.Minute)},
		Grove:     Grove{TerminationDelay: period(15 * time.Minute)},
		Rollout:   Rollout{ProgressDeadline: period(10 * time.Minute), HistoryLimit: 10, NoSpareAfter: period(30 * time.Second), AdmissionDeadline: period(2 * time.Minute)},
		Runtime:   Runtime{Contract: contractAuto, UnknownTags: graph.ContractSeed},
		MPI:       MPI{SSHSecret: "mpi-run-ssh-secret"},
		Profiler:  Profiler{Image: version.Image(version.Profiler), Deadline: period(4 * time.Hour)},
		// Straight to pods, except on a local cluster: its pods have addresses that
		// nothing but its proxy can reach, and are told of it.
		Network: Network{ForwardProxy: os.Getenv("DYNAMO_FORWARD_PROXY")},
		LoRA: LoRA{
			Parallel: 10, SlowParallel: 200, Timeout: period(15 * time.Second), RetryMin: period(time.Second), RetryMax: period(time.Minute),
			Recheck: period(10 * time.Minute), UnloadDeadline: period(30 * time.Second),
		},
		Controller: Controller{
			Workers: 8, QPS: 1000, Burst: 2000,
			Timeout: period(time.Minute), BatchPeriod: period(100 * time.Millisecond), Resync: period(10 * time.Hour),
			Queue:    Queue{BaseDelay: period(50 * time.Millisecond), MaxDelay: period(5 * time.Minute), RetryRate: 10, RetryBurst: 100},
			Watchdog: Watchdog{Stuck: period(2 * time.Minute), Idle: period(10 * time.Minute)},
			Fairness: Fairness{LowerPriorityEvery: 4, Window: period(10 * time.Second), ObjectBudget: 10, DegradedBudget: 10},
		},
		Server: Server{MetricsService: "dynamo-operator", MetricsAddress: listen("8080"), HealthAddress: listen("8081")},
		Leader: Leader{
			ID: "dynamo.nvidia.com", Namespace: OwnNamespace(), ReleaseOnStop: true,
			LeaseDuration: period(15 * time.Second), RenewDeadline: period(10 * time.Second), RetryPeriod: period(time.Second),
		},
		Shutdown: Shutdown{Drain: period(5 * time.Second), Grace: period(10 * time.Second)},
		Webhook: Webhook{
			Address: listen("9443"), Register: true, Configuration: "dynamo-operator-validating",
			Service: "dynamo-operator-webhook-service", Namespace: OwnNamespace(), Pod: os.Getenv("POD_NAME"),
			FailurePolicy: "Ignore", TimeoutSeconds: 10, Drain: period(5 * time.Second),
		},
		Certificate: Certificate{
			Mode: CertificateSelf, Secret: "webhook-server-cert", ClusterDomain: "cluster.local",
			Validity: period(90 * day), AuthorityValidity: period(365 * day),
		},
		Tenancy: Tenancy{
			Claim: true, Duration: period(30 * time.Second), Renew: period(10 * time.Second), ClusterNamespace: metav1.NamespaceSystem,
			Discovery: period(30 * time.Second), PolicyPrefix: "dynamo-operator",
		},
		Diagnosis: Diagnosis{ReadLogs: true},
		Log:       Log{Level: "info", Format: "json"},
		Tracing:   Tracing{Ratio: 1},
	}
}

func period(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// listen is a port on every address or, where several operators share one
// network, on the address that the environment names.
func listen(port string) string {
	return os.Getenv("DYNAMO_LISTEN_HOST") + ":" + port
}

// Package config is the operator's configuration: typed, defaulted, validated
// before anything starts. It comes from one file; flags override single values.
package config

import (
	"cmp"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// APIVersion and Kind say which form of configuration a file holds.
const (
	APIVersion = "dynamo-operator/v1alpha1"
	Kind       = "OperatorConfiguration"
)

// Config is everything that can be set.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Namespace restricts the operator to one namespace; empty means all.
	Namespace string `json:"namespace,omitempty"`

	Discovery  Discovery  `json:"discovery,omitzero"`
	Endpoints  Endpoints  `json:"endpoints,omitzero"`
	Ingress    Ingress    `json:"ingress,omitzero"`
	Roles      Roles      `json:"roles,omitzero"`
	Grove      Grove      `json:"grove,omitzero"`
	MPI        MPI        `json:"mpi,omitzero"`
	Controller Controller `json:"controller,omitzero"`
	Server     Server     `json:"server,omitzero"`
	Leader     Leader     `json:"leaderElection,omitzero"`
	Log        Log        `json:"log,omitzero"`
}

// Discovery is how the components of a graph find each other unless the graph
// says otherwise.
type Discovery struct {
	Backend graph.Discovery `json:"backend,omitempty"`
}

// Endpoints are services of the platform that every pod is told about.
type Endpoints struct {
	NATS         string `json:"nats,omitempty"`
	Etcd         string `json:"etcd,omitempty"`
	ModelExpress string `json:"modelExpress,omitempty"`
	Prometheus   string `json:"prometheus,omitempty"`
}

// Ingress is how frontends are reached unless a graph says otherwise. With
// neither class nor gateway they are reached from inside only.
type Ingress struct {
	Class      string `json:"class,omitempty"`
	TLSSecret  string `json:"tlsSecret,omitempty"`
	HostSuffix string `json:"hostSuffix,omitempty"`
	// Gateway is an Istio gateway.
	Gateway string `json:"gateway,omitempty"`
}

// Roles are ClusterRoles of the installation that accounts of a namespace are
// bound to; an empty name leaves that to the installation.
type Roles struct {
	Planner string `json:"planner,omitempty"`
	Picker  string `json:"picker,omitempty"`
}

// Grove tunes graphs that run on Grove.
type Grove struct {
	// TerminationDelay is how long a gang may be short of pods.
	TerminationDelay metav1.Duration `json:"terminationDelay,omitzero"`
}

// MPI is about engines that span nodes by MPI.
type MPI struct {
	// SSHSecret names the Secret with the key, one in each namespace.
	SSHSecret string `json:"sshSecret,omitempty"`
}

// Controller tunes the reconcilers.
type Controller struct {
	// Workers is the number of objects of one kind that are worked on at once.
	Workers int `json:"workers,omitempty"`
	// QPS and Burst bound the requests to the API server.
	QPS   float32 `json:"qps,omitempty"`
	Burst int     `json:"burst,omitempty"`
}

// Server says where the operator listens. An empty address turns a server off.
type Server struct {
	MetricsAddress string `json:"metricsAddress,omitempty"`
	HealthAddress  string `json:"healthAddress,omitempty"`
}

// Leader is about running several replicas of the operator.
type Leader struct {
	Enabled   bool   `json:"enabled,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Log is how the operator speaks.
type Log struct {
	// Format is text or json.
	Format string `json:"format,omitempty"`
	// Verbose adds what only a developer wants to know.
	Verbose bool `json:"verbose,omitempty"`
}

// Default is the configuration of an operator that was told nothing.
func Default() Config {
	return Config{
		APIVersion: APIVersion,
		Kind:       Kind,
		Discovery:  Discovery{Backend: graph.DiscoveryKubernetes},
		Grove:      Grove{TerminationDelay: metav1.Duration{Duration: 15 * time.Minute}},
		MPI:        MPI{SSHSecret: "mpi-run-ssh-secret"},
		Controller: Controller{Workers: 8, QPS: 200, Burst: 400},
		Server:     Server{MetricsAddress: listen("8080"), HealthAddress: listen("8081")},
		Log:        Log{Format: "json"},
	}
}

// listen is a port on every address or, where several operators share one
// network, on the address that the environment names.
func listen(port string) string {
	return os.Getenv("DYNAMO_LISTEN_HOST") + ":" + port
}

// Load reads a file over the defaults. A key that is not known is an error.
func Load(path string) (Config, error) {
	c := Default()
	if path == "" {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// Validate returns everything that is wrong at once.
func (c Config) Validate() error {
	var errs field.ErrorList
	if got := c.APIVersion + " " + c.Kind; got != APIVersion+" "+Kind {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), got, []string{APIVersion + " " + Kind}))
	}
	if b := c.Discovery.Backend; b != graph.DiscoveryKubernetes && b != graph.DiscoveryEtcd {
		errs = append(errs, field.NotSupported(field.NewPath("discovery", "backend"), b,
			[]graph.Discovery{graph.DiscoveryKubernetes, graph.DiscoveryEtcd}))
	}
	at := field.NewPath("controller")
	if c.Controller.Workers < 1 {
		errs = append(errs, field.Invalid(at.Child("workers"), c.Controller.Workers, "must be at least 1"))
	}
	if c.Controller.QPS <= 0 || c.Controller.Burst < 1 {
		errs = append(errs, field.Invalid(at.Child("qps"), c.Controller.QPS, "qps and burst must be positive"))
	}
	if f := cmp.Or(c.Log.Format, "json"); f != "json" && f != "text" {
		errs = append(errs, field.NotSupported(field.NewPath("log", "format"), f, []string{"json", "text"}))
	}
	return errs.ToAggregate()
}

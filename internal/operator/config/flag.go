package config

import (
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Flags are the operator's command line: the file, and single values that win
// over it. Names are those that installations of the original operator use.
type Flags struct {
	// Version asks for the version instead of the operator.
	Version bool

	path      string
	overrides []func(*Config) error
}

// ParseFlags reads a command line.
func ParseFlags(args []string, usage io.Writer) (*Flags, error) {
	f := &Flags{}
	set := flag.NewFlagSet("dynamo-operator", flag.ContinueOnError)
	set.SetOutput(usage)
	set.StringVar(&f.path, "config", "", "configuration `file`")
	set.BoolVar(&f.Version, "version", false, "print the version and exit")
	for _, o := range textFlags {
		set.Func(o.name, o.usage, func(value string) error {
			f.overrides = append(f.overrides, func(c *Config) error { return o.set(c, value) })
			return nil
		})
	}
	for _, o := range switchFlags {
		set.BoolFunc(o.name, o.usage, func(value string) error {
			on, err := strconv.ParseBool(value)
			f.overrides = append(f.overrides, func(c *Config) error { *o.field(c) = on; return nil })
			return err
		})
	}
	for _, gone := range removedFlags {
		set.BoolFunc(gone.name, "removed: "+gone.why, func(string) error {
			return fmt.Errorf("this flag was removed: %s", gone.why)
		})
	}
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag", set.Arg(0))
	}
	return f, nil
}

// Load reads the file and lays the flags over it.
func (f *Flags) Load() (Config, error) {
	c, err := Load(f.path)
	if err != nil {
		return Config{}, err
	}
	for _, set := range f.overrides {
		if err := set(&c); err != nil {
			return Config{}, err
		}
	}
	return c, c.Validate()
}

type textFlag struct {
	name, usage string
	set         func(c *Config, value string) error
}

func text(name, usage string, field func(*Config) *string) textFlag {
	return textFlag{name, usage, func(c *Config, value string) error { *field(c) = value; return nil }}
}

func duration(name, usage string, field func(*Config) *metav1.Duration) textFlag {
	return textFlag{name, usage, func(c *Config, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("flag --%s: %w", name, err)
		}
		field(c).Duration = d
		return nil
	}}
}

var textFlags = []textFlag{
	{"restrictedNamespace", "look after this `namespace` only", func(c *Config, v string) error {
		if c.Namespaces = nil; v != "" {
			c.Namespaces = []string{v}
		}
		return nil
	}},
	text("metrics-bind-address", "`address` of the metrics server", func(c *Config) *string { return &c.Server.MetricsAddress }),
	text("metrics-token-file", "`file` with the token of those who may read secure metrics, where the API server may not be asked", func(c *Config) *string { return &c.Server.MetricsTokenFile }),
	text("health-probe-bind-address", "`address` of the health server", func(c *Config) *string { return &c.Server.HealthAddress }),
	text("profile-bind-address", "`address` of Go's profiles; off by default", func(c *Config) *string { return &c.Server.ProfileAddress }),
	text("leader-election-id", "`name` of the lease", func(c *Config) *string { return &c.Leader.ID }),
	text("leader-election-namespace", "`namespace` of the lease", func(c *Config) *string { return &c.Leader.Namespace }),
	text("natsAddr", "`address` of NATS, for pods", func(c *Config) *string { return &c.Endpoints.NATS }),
	text("etcdAddr", "`address` of etcd, for pods and the operator", func(c *Config) *string { return &c.Endpoints.Etcd }),
	text("model-express-url", "`URL` of ModelExpress, for pods", func(c *Config) *string { return &c.Endpoints.ModelExpress }),
	text("prometheus-endpoint", "`URL` of Prometheus, for pods", func(c *Config) *string { return &c.Endpoints.Prometheus }),
	text("istio-virtual-service-gateway", "Istio `gateway` that frontends are reached through", func(c *Config) *string { return &c.Ingress.Gateway }),
	text("ingress-controller-class-name", "`class` of Ingresses for frontends", func(c *Config) *string { return &c.Ingress.Class }),
	text("ingress-controller-tls-secret-name", "`Secret` of those Ingresses", func(c *Config) *string { return &c.Ingress.TLSSecret }),
	text("ingress-host-suffix", "`domain` of those Ingresses", func(c *Config) *string { return &c.Ingress.HostSuffix }),
	text("mpi-run-ssh-secret-name", "`Secret` with the key of engines that span nodes by MPI", func(c *Config) *string { return &c.MPI.SSHSecret }),
	text("planner-cluster-role-name", "`ClusterRole` of planners", func(c *Config) *string { return &c.Roles.Planner }),
	text("epp-cluster-role-name", "`ClusterRole` of endpoint pickers", func(c *Config) *string { return &c.Roles.Picker }),
	text("dgdr-profiling-cluster-role-name", "`ClusterRole` of profilers", func(c *Config) *string { return &c.Profiler.Role }),
	text("forward-proxy", "HTTP `proxy` on the operator's way to pods", func(c *Config) *string { return &c.Network.ForwardProxy }),
	text("tracing-endpoint", "`URL` that takes traces by OTLP over HTTP; off by default", func(c *Config) *string { return &c.Tracing.Endpoint }),
	text("log-level", "debug, info, warn or error", func(c *Config) *string { return &c.Log.Level }),
	text("log-format", "text or json", func(c *Config) *string { return &c.Log.Format }),
	{"discovery-backend", "kubernetes or etcd", func(c *Config, v string) error {
		c.Discovery.Backend = graph.Discovery(v)
		return nil
	}},
	duration("grove-termination-delay", "how `long` a gang may be short of pods", func(c *Config) *metav1.Duration { return &c.Grove.TerminationDelay }),
	duration("namespace-scope-lease-duration", "how `long` the Lease of a namespace holds that is not renewed", func(c *Config) *metav1.Duration { return &c.Tenancy.Duration }),
	duration("namespace-scope-lease-renew-interval", "how `often` it is renewed", func(c *Config) *metav1.Duration { return &c.Tenancy.Renew }),
}

type switchFlag struct {
	name, usage string
	field       func(*Config) *bool
}

var switchFlags = []switchFlag{
	{"leader-elect", "let one of several replicas work", func(c *Config) *bool { return &c.Leader.Enabled }},
	{"metrics-secure", "serve metrics by TLS to those who may read them", func(c *Config) *bool { return &c.Server.SecureMetrics }},
	{"enable-webhooks", "serve webhooks; controllers validate in any case", func(c *Config) *bool { return &c.Webhook.Enabled }},
	{"enable-http2", "allow HTTP/2 on servers with TLS", func(c *Config) *bool { return &c.Server.HTTP2 }},
}

// removedFlags are flags of the original operator that mean nothing here. One
// of them in a manifest should stop the start with a word, not be taken for
// something that works.
var removedFlags = []struct{ name, why string }{
	{"mpi-run-ssh-secret-namespace", "every namespace has a key of its own, which is made when a graph needs it"},
	{"virtual-service-supports-https", "it had no effect"},
	{"operator-version", "the version is built in; see --version"},
	{"kubeconfig", "set KUBECONFIG in the environment"},
	{"zap-devel", "use --log-level and --log-format"},
	{"zap-encoder", "use --log-format"},
	{"zap-log-level", "use --log-level"},
	{"zap-stacktrace-level", "stack traces are logged for panics alone"},
	{"zap-time-encoding", "times are logged as RFC 3339"},
}

package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

func TestLoad(t *testing.T) {
	const head = "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\n"
	cases := map[string]struct {
		text    string
		problem string // part of the error that a person needs to mend it
	}{
		"what a file leaves out keeps its default": {text: head + "endpoints: {nats: nats://nats:4222}\n"},
		"a key that is not known is named":         {text: head + "natsAddr: x\n", problem: "natsAddr"},
		"a value out of range is named":            {text: head + "controller: {workers: 0, qps: 1, burst: 1}\n", problem: "controller.workers"},
		"another form of configuration is refused": {text: "apiVersion: v2\nkind: OperatorConfiguration\n", problem: "apiVersion"},
		"a discovery backend is one of two":        {text: head + "discovery: {backend: dns}\n", problem: "discovery.backend"},
		"an unknown key is named with its path":    {text: head + "controller: {queue: {wait: 1s}}\n", problem: "controller.queue.wait"},
		"a key that is given twice is refused":     {text: head + "log: {level: info}\nlog: {level: debug}\n", problem: "log"},
		"workers are tuned for kinds that exist":   {text: head + "controller: {workersPerKind: {Pod: 3}}\n", problem: "controller.workersPerKind"},
		"back-off grows":                           {text: head + "controller: {queue: {baseDelay: 1m, maxDelay: 1s}}\n", problem: "controller.queue.maxDelay"},
		"a leader gives up before its lease ends":  {text: head + "leaderElection: {enabled: true, leaseDuration: 5s}\n", problem: "leaderElection.leaseDuration"},
		"a namespace is ours or not":               {text: head + "namespaces: [a]\nexcludedNamespaces: [a]\n", problem: "excludedNamespaces[0]"},
		"a proxy is a URL":                         {text: head + "network: {forwardProxy: 'proxy:3128'}\n", problem: "network.forwardProxy"},
		"traces go to a URL":                       {text: head + "tracing: {endpoint: 'collector:4317'}\n", problem: "tracing.endpoint"},
		"a log level is one of four":               {text: head + "log: {level: trace}\n", problem: "log.level"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Load(path)
			if err == nil {
				err = got.Validate()
			}
			if c.problem == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got.Controller.Workers != Default().Controller.Workers {
					t.Errorf("workers = %d", got.Controller.Workers)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("error %v does not name %s", err, c.problem)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "ops")
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\nlog: {level: warn, format: text}\nendpoints: {nats: nats://file}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args    []string
		want    func(Config) bool
		problem string
	}{
		"a flag wins over the file":             {args: []string{"--config", file, "--natsAddr=nats://flag"}, want: func(c Config) bool { return c.Endpoints.NATS == "nats://flag" && c.Log.Level == "warn" }},
		"a switch needs no value":               {args: []string{"--leader-elect", "--metrics-secure=false"}, want: func(c Config) bool { return c.Leader.Enabled && !c.Server.SecureMetrics }},
		"one namespace is restricted by flag":   {args: []string{"--restrictedNamespace", "a"}, want: func(c Config) bool { return c.Covers("a") && !c.Covers("b") }},
		"webhooks are a switch of the original": {args: []string{"--enable-webhooks=true", "--config", file}, want: func(c Config) bool { return c.Webhook.Enabled }},
		"the Lease of a namespace has its times": {args: []string{"--namespace-scope-lease-duration=60s", "--namespace-scope-lease-renew-interval", "20s"}, want: func(c Config) bool {
			return c.Tenancy.Duration.Duration == time.Minute && c.Tenancy.Renew.Duration == 20*time.Second
		}},
		"and they have to fit":                       {args: []string{"--namespace-scope-lease-duration=5s"}, problem: "tenancy.duration"},
		"the cluster is not named by a flag":         {args: []string{"--kubeconfig", "x"}, problem: "set KUBECONFIG"},
		"what a flag sets is validated":              {args: []string{"--discovery-backend", "dns"}, problem: "discovery.backend"},
		"a duration that is none is named":           {args: []string{"--grove-termination-delay", "soon"}, problem: "grove-termination-delay"},
		"a flag that means nothing any more says so": {args: []string{"--mpi-run-ssh-secret-namespace=x"}, problem: "every namespace has a key of its own"},
		"a flag that is not known is named":          {args: []string{"--profile"}, problem: "profile"},
		"an argument that is no flag is named":       {args: []string{"serve"}, problem: "serve"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			flags, err := ParseFlags(c.args, io.Discard)
			var got Config
			if err == nil {
				got, err = flags.Load()
			}
			switch {
			case c.problem == "" && err != nil:
				t.Fatal(err)
			case c.problem == "" && !c.want(got):
				t.Errorf("configuration %+v", got)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("error %v does not name %s", err, c.problem)
			}
		})
	}
}

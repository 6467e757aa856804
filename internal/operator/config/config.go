// Package config is the operator's configuration: typed, defaulted, validated
// before anything starts. It comes from one file; flags override single values.
// Each concern has a file with its type and its rules; defaults.go has all defaults.
package config

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
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

	Scope `json:",inline"`

	API           API           `json:"api,omitzero"`
	Discovery     Discovery     `json:"discovery,omitzero"`
	Endpoints     Endpoints     `json:"endpoints,omitzero"`
	Ingress       Ingress       `json:"ingress,omitzero"`
	Roles         Roles         `json:"roles,omitzero"`
	Grove         Grove         `json:"grove,omitzero"`
	Rollout       Rollout       `json:"rollout,omitzero"`
	Runtime       Runtime       `json:"runtime,omitzero"`
	MPI           MPI           `json:"mpi,omitzero"`
	Profiler      Profiler      `json:"profiler,omitzero"`
	Planner       Planner       `json:"planner,omitzero"`
	Activator     Activator     `json:"activator,omitzero"`
	Scaling       Scaling       `json:"scaling,omitzero"`
	Network       Network       `json:"network,omitzero"`
	LoRA          LoRA          `json:"lora,omitzero"`
	Controller    Controller    `json:"controller,omitzero"`
	Server        Server        `json:"server,omitzero"`
	Leader        Leader        `json:"leaderElection,omitzero"`
	Shutdown      Shutdown      `json:"shutdown,omitzero"`
	Webhook       Webhook       `json:"webhook,omitzero"`
	Certificate   Certificate   `json:"certificate,omitzero"`
	Tenancy       Tenancy       `json:"tenancy,omitzero"`
	Topology      Topology      `json:"topology,omitzero"`
	Failover      Failover      `json:"failover,omitzero"`
	NetworkPolicy NetworkPolicy `json:"networkPolicy,omitzero"`
	Diagnosis     Diagnosis     `json:"diagnosis,omitzero"`
	Log           Log           `json:"log,omitzero"`
	Tracing       Tracing       `json:"tracing,omitzero"`
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
	if err := c.read(text); err != nil {
		return Config{}, fmt.Errorf("read configuration %s: %w", path, err)
	}
	return c, nil
}

// Check returns the keys of a text that are not known, and values that are of another type:
// no operator starts with them. What depends on where it runs is not looked at.
func Check(text []byte) error {
	c := Default()
	return c.read(text)
}

func (c *Config) read(text []byte) error {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	unknown, err := json.UnmarshalStrict(asJSON, c)
	return errors.Join(append(unknown, err)...)
}

// Validate returns everything that is wrong at once.
func (c Config) Validate() error {
	var errs field.ErrorList
	if got := c.APIVersion + " " + c.Kind; got != APIVersion+" "+Kind {
		errs = append(errs, field.NotSupported(field.NewPath("apiVersion"), got, []string{APIVersion + " " + Kind}))
	}
	errs = append(errs, c.Scope.validate()...)
	errs = append(errs, c.Discovery.validate(field.NewPath("discovery"))...)
	errs = append(errs, c.Ingress.validate(field.NewPath("ingress"))...)
	errs = append(errs, c.Rollout.validate(field.NewPath("rollout"))...)
	errs = append(errs, c.Runtime.validate(field.NewPath("runtime"))...)
	errs = append(errs, c.Profiler.validate(field.NewPath("profiler"))...)
	errs = append(errs, c.Scaling.validate(field.NewPath("scaling"))...)
	errs = append(errs, c.Network.validate(field.NewPath("network"))...)
	errs = append(errs, c.LoRA.validate(field.NewPath("lora"))...)
	errs = append(errs, c.Controller.validate(field.NewPath("controller"))...)
	errs = append(errs, c.Leader.validate(field.NewPath("leaderElection"))...)
	errs = append(errs, c.Shutdown.validate(field.NewPath("shutdown"))...)
	errs = append(errs, c.Webhook.validate(field.NewPath("webhook"))...)
	errs = append(errs, c.Certificate.validate(field.NewPath("certificate"))...)
	errs = append(errs, c.Tenancy.validate(c.ClusterWide(), field.NewPath("tenancy"))...)
	errs = append(errs, c.Topology.validate(field.NewPath("topology"))...)
	errs = append(errs, c.Log.validate(field.NewPath("log"))...)
	errs = append(errs, c.Tracing.validate(field.NewPath("tracing"))...)
	return errs.ToAggregate()
}

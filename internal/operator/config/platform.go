package config

import (
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	rules "github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// Discovery is how the components of a graph find each other unless the graph
// says otherwise.
type Discovery struct {
	// Backend is kubernetes or etcd.
	Backend graph.Discovery `json:"backend,omitempty"`
	// CleanupDeadline is how long the deletion of a graph waits for etcd to give
	// its keys up.
	CleanupDeadline metav1.Duration `json:"cleanupDeadline,omitzero"`
}

func (d Discovery) validate(at *field.Path) field.ErrorList {
	known := []graph.Discovery{graph.DiscoveryKubernetes, graph.DiscoveryEtcd}
	return append(oneOf(at.Child("backend"), d.Backend, known...), atLeast(at.Child("cleanupDeadline"), d.CleanupDeadline, 0)...)
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
	// Allowed limits what users write into Ingresses and VirtualServices.
	Allowed `json:",inline"`
}

// Allowed are lists of what users may write; an empty one sets no limit of its
// own. Where the policies that authorize them are not enforced, only what is
// listed is made.
type Allowed struct {
	// Hosts are names, or suffixes that begin with a dot.
	Hosts []string `json:"allowedHosts,omitempty"`
	// Classes are those of ingress controllers.
	Classes []string `json:"allowedClasses,omitempty"`
	// Gateways are namespace/name, or mesh.
	Gateways []string `json:"allowedGateways,omitempty"`
	// Annotations are prefixes of the keys of annotations and labels.
	Annotations []string `json:"allowedAnnotations,omitempty"`
}

func (i Ingress) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for n, host := range i.Hosts {
		for _, problem := range validation.IsDNS1123Subdomain(strings.TrimPrefix(strings.TrimPrefix(host, "*"), ".")) {
			errs = append(errs, field.Invalid(at.Child("allowedHosts").Index(n), host, problem))
		}
	}
	for n, gateway := range i.Gateways {
		if namespace, name, split := strings.Cut(gateway, "/"); gateway != "mesh" && (!split || namespace == "" || name == "") {
			errs = append(errs, field.Invalid(at.Child("allowedGateways").Index(n), gateway, "must be namespace/name, or mesh"))
		}
	}
	for key, list := range map[string][]string{"allowedClasses": i.Classes, "allowedAnnotations": i.Annotations} {
		for n, entry := range list {
			if entry == "" {
				errs = append(errs, field.Required(at.Child(key).Index(n), "an empty entry would allow everything"))
			}
		}
	}
	return errs
}

func (i Ingress) defaults() graph.IngressDefaults {
	return graph.IngressDefaults{Class: i.Class, TLSSecret: i.TLSSecret, HostSuffix: i.HostSuffix, Gateway: i.Gateway}
}

// Rules is what the configuration says to the rules of validation.
func (c Config) Rules() rules.Scope {
	return rules.Scope{ClusterWide: c.ClusterWide(), Reserved: c.reserved(), InPlace: !c.Rollout.Generations, Contract: c.Runtime.rules(), NodeLabels: c.Topology.shown(), Ingress: rules.IngressRules{
		Hosts: c.Ingress.Hosts, Classes: c.Ingress.Classes, Gateways: c.Ingress.Gateways,
		Metadata: c.Ingress.Annotations, Defaults: c.Ingress.defaults(),
	}}
}

// Roles are ClusterRoles of the installation that accounts of a namespace are
// bound to; an empty name leaves that to the installation.
type Roles struct {
	Planner string `json:"planner,omitempty"`
	Picker  string `json:"picker,omitempty"`
}

// Planner is about planners of graphs.
type Planner struct {
	// Image is that of our planner; empty is dynamo-planner beside the profiler's image.
	Image string `json:"image,omitempty"`
	// Native puts it in place of every planner; without it graphs ask for it by their
	// annotation.
	Native bool `json:"native"`
}

func (p Planner) rules(profiler string) graph.PlannerRules {
	image := p.Image
	if beside, found := version.Beside(profiler, version.Planner); image == "" && found {
		image = beside
	}
	return graph.PlannerRules{Image: cmp.Or(image, version.Image(version.Planner)), Always: p.Native}
}

// Activator is what holds requests of graphs that scale to zero.
type Activator struct {
	// Enabled lets graphs scale to zero. It takes rights on Leases, those of others
	// included, which the role dynamo-operator-activation has.
	Enabled bool `json:"enabled,omitempty"`
	// Image is that of dynamo-activator; empty is the one beside the profiler's image.
	Image string `json:"image,omitempty"`
}

// image is empty where no graph may scale to zero.
func (a Activator) image(profiler string) string {
	if !a.Enabled {
		return ""
	}
	beside, _ := version.Beside(profiler, version.Activator)
	return cmp.Or(a.Image, beside, version.Image(version.Activator))
}

// Grove tunes graphs that run on Grove.
type Grove struct {
	// TerminationDelay is how long a gang may be short of pods.
	TerminationDelay metav1.Duration `json:"terminationDelay,omitzero"`
}

// Rollout tunes how changes reach pods.
type Rollout struct {
	// ProgressDeadline is how long a workload may make no progress before it is
	// said to be stuck.
	// A rollout of workers that makes none for so long is aborted.
	ProgressDeadline metav1.Duration `json:"progressDeadline,omitzero"`
	// Generations keeps old and new workers apart while one replaces the other, under
	// the contract of 1.x; without it, workloads replace their pods by themselves.
	Generations bool `json:"generations"`
	// DisruptionBudgets has evictions of pods leave as many replicas as a rollout has to,
	// for graphs that do not say otherwise.
	DisruptionBudgets bool `json:"disruptionBudgets"`
	// HistoryLimit is how many revisions of a graph are kept.
	HistoryLimit int `json:"historyLimit,omitempty"`
	// NoSpareAfter is how long a pod may wait for a node before a rollout counts on
	// none.
	NoSpareAfter metav1.Duration `json:"noSpareAfter,omitzero"`
	// AdmissionDeadline is how long a worker may be ready and frontends send it no requests
	// before a rollout is said to be blocked because of that.
	AdmissionDeadline metav1.Duration `json:"admissionDeadline,omitzero"`
}

func (r Rollout) validate(at *field.Path) field.ErrorList {
	errs := atLeast(at.Child("progressDeadline"), r.ProgressDeadline, time.Second)
	errs = append(errs, atLeast(at.Child("noSpareAfter"), r.NoSpareAfter, time.Second)...)
	errs = append(errs, atLeast(at.Child("admissionDeadline"), r.AdmissionDeadline, time.Second)...)
	if r.HistoryLimit < 1 {
		errs = append(errs, field.Invalid(at.Child("historyLimit"), r.HistoryLimit, "must be at least 1"))
	}
	return errs
}

// MPI is about engines that span nodes by MPI.
type MPI struct {
	// SSHSecret names the Secret with the key, one in each namespace.
	SSHSecret string `json:"sshSecret,omitempty"`
}

// Platform is what the configuration says to rendering. Facts of a cluster and
// a namespace are added where they are known.
func (c Config) Platform() render.Platform {
	return render.Platform{
		Defaults: graph.Defaults{
			Discovery: c.Discovery.Backend,
			Ingress:   c.Ingress.defaults(),
			Contract:  c.Runtime.rules(),
			Planner:   c.Planner.rules(c.Profiler.Image),
		},
		Pod: pod.Platform{
			NATS: c.Endpoints.NATS, Etcd: c.Endpoints.Etcd,
			ModelExpress: c.Endpoints.ModelExpress, Prometheus: c.Endpoints.Prometheus,
			SSHSecret: c.MPI.SSHSecret,
		},
		Roles:                 render.Roles{Planner: c.Roles.Planner, Picker: c.Roles.Picker},
		Activator:             c.Activator.image(c.Profiler.Image),
		GroveTerminationDelay: c.Grove.TerminationDelay.Duration,
		ProgressDeadline:      c.Rollout.ProgressDeadline.Duration,
		Generations:           c.Rollout.Generations,
		DisruptionBudgets:     c.Rollout.DisruptionBudgets,
		NetworkPolicy:         c.NetworkPolicy.render(c.Webhook.Namespace),
	}
}

package metric

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
)

const kindOfGraphs = v1alpha1.KindDynamoGraphDeployment

// Object is what the inventory says about one object.
type Object struct {
	Kind, Namespace, Name string
	// Status is a word of a small set.
	Status string
	// Ready counts for graphs.
	Ready bool
	// Rollout is that of a graph whose workers were ever rolled out by generations.
	Rollout *Rollout
}

// Rollout is how far one is.
type Rollout struct {
	Phase generation.Phase
	// Roles are what serves while it is under way, sorted.
	Roles []Role
}

// Role is what serves of one worker service, and what has to.
type Role struct {
	Service          string
	Effective, Floor int32
}

// inventory counts the objects of our kinds when it is asked, so that it is
// never behind and nothing of what is gone stays.
type inventory struct {
	metrics *Metrics
	list    func() (objects []Object, ok bool)
}

type place struct{ kind, namespace string }

var (
	resources = prometheus.NewDesc(prefix+"resources_total",
		"Objects by kind, namespace and status.", []string{"resource_type", "namespace", "status"}, nil)
	graphReady = prometheus.NewDesc(prefix+"graph_ready",
		"Whether all services of a graph are ready, in the generation that its spec has now.", []string{"namespace", "graph"}, nil)
	rolloutPhase = prometheus.NewDesc(prefix+"rollout_phase",
		"1 for the phase that the last rollout of a graph's workers is in, 0 for the others.", []string{"namespace", "graph", "phase"}, nil)
	rolloutEffective = prometheus.NewDesc(prefix+"rollout_effective_replicas",
		"Replicas of a worker service that serve in complete generations, while it is rolled out.", []string{"namespace", "graph", "service"}, nil)
	rolloutFloor = prometheus.NewDesc(prefix+"rollout_floor_replicas",
		"The least number of effective replicas that a rollout may leave.", []string{"namespace", "graph", "service"}, nil)
)

// Describe tells Prometheus what to expect.
func (i *inventory) Describe(to chan<- *prometheus.Desc) {
	to <- resources
	to <- graphReady
	to <- rolloutPhase
	to <- rolloutEffective
	to <- rolloutFloor
}

// Collect counts.
func (i *inventory) Collect(to chan<- prometheus.Metric) {
	objects, ok := i.list()
	if !ok {
		return
	}
	type group struct{ kind, namespace, status string }
	counts, places := map[group]int{}, map[place]bool{}
	for _, o := range objects {
		counts[group{o.Kind, o.Namespace, o.Status}]++
		places[place{o.Kind, o.Namespace}] = true
		if o.Kind == kindOfGraphs {
			to <- prometheus.MustNewConstMetric(graphReady, prometheus.GaugeValue, truth(o.Ready), o.Namespace, o.Name)
			o.rollout(to)
		}
	}
	order := func(a, b group) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.status, b.status))
	}
	for _, g := range slices.SortedFunc(maps.Keys(counts), order) {
		to <- prometheus.MustNewConstMetric(resources, prometheus.GaugeValue, float64(counts[g]), g.kind, g.namespace, g.status)
	}
	i.metrics.keep(places)
}

// rollout tells of all phases, so that an alert finds a zero where all is well.
func (o Object) rollout(to chan<- prometheus.Metric) {
	if o.Rollout == nil {
		return
	}
	gauge := func(of *prometheus.Desc, value float64, label string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, o.Namespace, o.Name, label)
	}
	for _, phase := range generation.Phases {
		gauge(rolloutPhase, truth(phase == o.Rollout.Phase), string(phase))
	}
	for _, role := range o.Rollout.Roles {
		gauge(rolloutEffective, float64(role.Effective), role.Service)
		gauge(rolloutFloor, float64(role.Floor), role.Service)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

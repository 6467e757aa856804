package metric

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

const kindOfGraphs = v1alpha1.KindDynamoGraphDeployment

// Object is what the inventory says about one object.
type Object struct {
	Kind, Namespace, Name string
	// Status is a word of a small set.
	Status string
	// Ready counts for graphs.
	Ready bool
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
)

// Describe tells Prometheus what to expect.
func (i *inventory) Describe(to chan<- *prometheus.Desc) {
	to <- resources
	to <- graphReady
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

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

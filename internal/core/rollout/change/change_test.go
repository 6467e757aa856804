package change

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func worker() graph.Component {
	return graph.Component{
		Name: "decode", Role: graph.RoleDecode, Type: "decode", Replicas: 2, Nodes: 1,
		Main: &corev1.Container{
			Image: "example.com/engine:1.0.0", Args: []string{"--model", "m"},
			Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
		},
		Pod: &corev1.PodSpec{},
	}
}

func TestOnlyWhatWorkersDoNotTellEachOtherIsHarmless(t *testing.T) {
	const main = "podTemplate.spec.containers[main]."
	for rule, c := range map[string]struct {
		change func(*graph.Component)
		want   []string
	}{
		"nothing":       {change: func(*graph.Component) {}},
		"replicas":      {change: func(c *graph.Component) { c.Replicas = 9 }},
		"labels":        {change: func(c *graph.Component) { c.PodLabels = map[string]string{"a": "b"} }},
		"annotations":   {change: func(c *graph.Component) { c.Annotations = map[string]string{"a": "b"} }},
		"a probe":       {change: func(c *graph.Component) { c.Readiness = &corev1.Probe{PeriodSeconds: 3} }},
		"pull policy":   {change: func(c *graph.Component) { c.Main.ImagePullPolicy = corev1.PullAlways }},
		"tolerations":   {change: func(c *graph.Component) { c.Pod.Tolerations = []corev1.Toleration{{Key: "gpu"}} }},
		"node selector": {change: func(c *graph.Component) { c.Pod.NodeSelector = map[string]string{"a": "b"} }},
		"priority":      {change: func(c *graph.Component) { c.Pod.PriorityClassName = "high" }},
		"grace period":  {change: func(c *graph.Component) { c.Pod.TerminationGracePeriodSeconds = new(int64(9)) }},
		"memory": {change: func(c *graph.Component) {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}},
		"order of variables": {change: func(c *graph.Component) { c.Main.Env = []corev1.EnvVar{c.Main.Env[1], c.Main.Env[0]} }},
		"an image rolls":     {change: func(c *graph.Component) { c.Main.Image = "example.com/engine:1.1.0" }, want: []string{main + "image"}},
		"an argument rolls":  {change: func(c *graph.Component) { c.Main.Args = []string{"--model", "n"} }, want: []string{main + "args[]"}},
		"a variable rolls":   {change: func(c *graph.Component) { c.Main.Env[0].Value = "3" }, want: []string{main + "env[A].value"}},
		"GPUs roll": {change: func(c *graph.Component) {
			c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
		}, want: []string{main + "resources"}},
		"nodes roll":           {change: func(c *graph.Component) { c.Nodes = 2 }, want: []string{"multinode"}},
		"a volume rolls":       {change: func(c *graph.Component) { c.Pod.Volumes = []corev1.Volume{{Name: "v"}} }, want: []string{"podTemplate.spec.volumes"}},
		"an unlisted field":    {change: func(c *graph.Component) { c.Pod.HostNetwork = true }, want: []string{"podTemplate.spec.hostNetwork"}},
		"how they are found":   {change: func(c *graph.Component) { c.Discovery = graph.DiscoveryEtcd }, want: []string{"discovery"}},
		"how nodes are joined": {change: func(c *graph.Component) { c.Executor = graph.ExecutorRay }, want: []string{"executor"}},
	} {
		t.Run(rule, func(t *testing.T) {
			changed := worker()
			c.change(&changed)
			if diff := cmp.Diff(c.want, Breaking(worker(), changed)); diff != "" {
				t.Error("-want +got", diff)
			}
		})
	}
}

package topologylabel

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAPodIsGivenWhatItAsksFor(t *testing.T) {
	const byLabel, byName = v1alpha1.AnnotationTopologyLabel, v1alpha1.AnnotationTopologyName
	node := map[string]string{"zone": "z", "rack": "r", "secret": "s"}
	levels := []Level{{"zone", "zone"}, {"rack", "rack"}, {"host", "host"}, {"hidden", "secret"}}
	shown := []string{"zone", "rack", "host"}
	for rule, c := range map[string]struct {
		annotations, labels map[string]string
		levels              []Level
		want                map[string]string
	}{
		"the label that it names":                       {map[string]string{byLabel: "rack"}, nil, nil, map[string]string{"rack": "r"}},
		"the levels of the topology that it names":      {map[string]string{byName: "t"}, nil, levels, map[string]string{"nvidia.com/dynamo-topology.zone": "z", "nvidia.com/dynamo-topology.rack": "r"}},
		"not what it has":                               {map[string]string{byLabel: "rack"}, map[string]string{"rack": "mine"}, nil, map[string]string{}},
		"not what the node does not have":               {map[string]string{byLabel: "host"}, nil, nil, map[string]string{}},
		"not what the installation does not let it see": {map[string]string{byLabel: "secret"}, nil, nil, map[string]string{}},
		"nothing, if it does not ask":                   {nil, nil, nil, map[string]string{}},
	} {
		t.Run(rule, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations, Labels: c.labels}}
			if diff := cmp.Diff(c.want, Missing(pod, node, c.levels, shown)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPodAsksOnceItHasANode(t *testing.T) {
	now := metav1.Now()
	asking := map[string]string{v1alpha1.AnnotationTopologyName: "t"}
	for rule, c := range map[string]struct {
		pod      corev1.Pod
		topology string
		asks     bool
	}{
		"with a node":         {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: asking}, Spec: corev1.PodSpec{NodeName: "n"}}, "t", true},
		"without one":         {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: asking}}, "", false},
		"not while it ends":   {corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: asking, DeletionTimestamp: &now}, Spec: corev1.PodSpec{NodeName: "n"}}, "", false},
		"not without a label": {corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}, "", false},
	} {
		t.Run(rule, func(t *testing.T) {
			if topology, asks := Asks(&c.pod); topology != c.topology || asks != c.asks {
				t.Errorf("asks %t, of %q", asks, topology)
			}
		})
	}
}

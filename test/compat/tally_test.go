package compat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

func TestTally(t *testing.T) {
	const service = `{"kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "ClusterIP"}}`
	cases := map[string]struct {
		theirs, ours string
		want         count
		unexplained  []string // leaves; "" is a whole object
	}{
		"equal leaves count": {
			theirs: service,
			ours:   service,
			want:   count{objects: 1, leaves: 1, equal: 1},
		},
		"a leaf that differs needs a reason": {
			theirs:      service,
			ours:        `{"kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "NodePort"}}`,
			want:        count{objects: 1, leaves: 1},
			unexplained: []string{"spec.type"},
		},
		"an object that is missing needs one": {
			theirs:      service,
			unexplained: []string{""},
		},
		"an object that only we make needs one": {
			ours:        service,
			unexplained: []string{""},
		},
		"an intended difference is still unequal": {
			theirs: `{"kind": "LeaderWorkerSet", "metadata": {"name": "x"}, "spec": {"rolloutStrategy": {"type": ""}}}`,
			ours:   `{"kind": "LeaderWorkerSet", "metadata": {"name": "x"}, "spec": {"rolloutStrategy": {"type": "RollingUpdate"}}}`,
			want:   count{objects: 1, leaves: 1},
		},
		"what a server assigns does not count": {
			theirs: service,
			ours: `{"kind": "Service", "metadata": {"name": "x", "uid": "1"}, "status": {"a": 1},
				"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1"}}`,
			want: count{objects: 1, leaves: 1, equal: 1},
		},
		"an intended addition does not count": {
			theirs: service,
			ours: `{"kind": "Service", "metadata": {"name": "x"},
				"spec": {"type": "ClusterIP", "selector": {"nvidia.com/dynamo-component": "x"}}}`,
			want: count{objects: 1, leaves: 1, equal: 1},
		},
		"what no operator decided does not count": {
			theirs: `{"kind": "DynamoGraphDeployment", "metadata": {"name": "g"}, "spec": {"pvcs": [{"name": "p", "size": "0"}]}}`,
			ours:   `{"kind": "DynamoGraphDeployment", "metadata": {"name": "g"}, "spec": {"pvcs": [{"name": "p"}]}}`,
			want:   count{objects: 1, leaves: 1, equal: 1},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			got := newTally(january)
			got.add(workload.ProviderComponent, "m.yaml", parse(t, c.theirs), parse(t, c.ours))
			if diff := cmp.Diff(c.want, got.total(), cmp.AllowUnexported(count{})); diff != "" {
				t.Errorf("count (-want +got):\n%s", diff)
			}
			var unexplained []string
			for _, d := range got.unexplained {
				unexplained = append(unexplained, d.leaf)
			}
			if diff := cmp.Diff(c.unexplained, unexplained); diff != "" {
				t.Errorf("unexplained (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsAreReplacedByAChangeOfTheirTemplate(t *testing.T) {
	const before = `{"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 1, "template": {"spec": {"hostname": "a"}}}}`
	for rule, c := range map[string]struct {
		ours string
		want int
	}{
		"another number of replicas keeps them": {`{"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 2, "template": {"spec": {"hostname": "a"}}}}`, 0},
		"another template does not":             {`{"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 1, "template": {"spec": {"hostname": "b"}}}}`, 1},
	} {
		t.Run(rule, func(t *testing.T) {
			got := newTally(january)
			got.add(workload.ProviderComponent, "m.yaml", parse(t, before), parse(t, c.ours))
			if n := len(got.rolled()); n != c.want {
				t.Errorf("%d manifests lose their pods, want %d", n, c.want)
			}
		})
	}
}

func TestScriptsAreComparedAroundTheirWaiting(t *testing.T) {
	const theirs = "cp key && printf x > ~/.ssh/config && wait; done && mpirun -n 8"
	cases := map[string]struct {
		ours string
		want bool
	}{
		"another way to wait is the same":   {"cp key && printf x > ~/.ssh/config && { wait; } && mpirun -n 8", true},
		"another launch is not":             {"cp key && printf x > ~/.ssh/config && { wait; } && mpirun -n 4", false},
		"another set-up is not":             {"cp other && printf x > ~/.ssh/config && { wait; } && mpirun -n 8", false},
		"a script without a wait is not it": {"sleep infinity", false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if got := sameButForWaiting(theirs, c.ours); got != c.want {
				t.Errorf("same = %t", got)
			}
		})
	}
}

// parse reads one object, or none.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return []*unstructured.Unstructured{o}
}

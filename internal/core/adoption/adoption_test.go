package adoption

import (
	"cmp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func read(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestTemplatesStayAsTheyWereAdopted(t *testing.T) {
	const deployment = `{kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, args: [ours]}]}}}}`
	const group = `{kind: LeaderWorkerSet, metadata: {name: g}, spec: {replicas: 2, leaderWorkerTemplate: {size: 2, leaderTemplate: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, args: [ours]}]}}, workerTemplate: {spec: {}}}}}`
	const cliques = `{kind: PodCliqueSet, metadata: {name: p}, spec: {template: {cliques: [
		{name: x, labels: {a: b}, spec: {replicas: 3, podSpec: {containers: [{name: main, args: [ours]}]}}},
		{name: y, labels: {a: b}, spec: {replicas: 4, podSpec: {containers: [{name: main, args: [ours]}]}}}]}}}`
	for rule, c := range map[string]struct {
		// adopted is what was wanted when the object was adopted; what is now if empty.
		adopted, wanted string
		// left is what the object was then; what it is now if empty.
		left, live, want string
	}{
		"those of a Deployment": {
			wanted: deployment,
			live:   `{kind: Deployment, spec: {replicas: 1, template: {metadata: {creationTimestamp: null, labels: {a: b, c: d}}, spec: {containers: [{name: main, args: [theirs]}]}}}}`,
			want:   `{kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: main, args: [theirs]}]}}}}`,
		},
		"with another number of replicas": {
			adopted: `{kind: Deployment, spec: {replicas: 7, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, args: [ours]}]}}}}`, wanted: deployment,
			live: `{kind: Deployment, spec: {template: {metadata: {labels: {a: b}}, spec: {}}}}`,
			want: `{kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {metadata: {labels: {a: b}}, spec: {}}}}`,
		},
		"until something else is wanted of them": {
			adopted: `{kind: Deployment, spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, args: [earlier]}]}}}}`, wanted: deployment,
			live: `{kind: Deployment, spec: {template: {metadata: {labels: {a: b}}, spec: {}}}}`,
		},
		"until somebody changes them": {
			wanted: deployment,
			left:   `{kind: Deployment, spec: {template: {metadata: {labels: {a: b}}, spec: {}}}}`,
			live:   `{kind: Deployment, spec: {template: {metadata: {labels: {a: b}}, spec: {hostNetwork: true}}}}`,
		},
		"unless their pods lack a label that ours are found by": {
			wanted: deployment, live: `{kind: Deployment, spec: {template: {metadata: {labels: {c: d}}, spec: {}}}}`,
		},
		"also of pods that claim devices as ours do": {
			wanted: `{kind: Deployment, metadata: {name: d}, spec: {template: {metadata: {labels: {a: b}}, spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}}}}`,
			live:   `{kind: Deployment, spec: {template: {metadata: {labels: {a: b}}, spec: {hostNetwork: true, resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}}}}`,
			want:   `{kind: Deployment, metadata: {name: d}, spec: {template: {metadata: {labels: {a: b}}, spec: {hostNetwork: true, resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}}}}`,
		},
		"unless their pods claim others": {
			wanted: deployment, live: `{kind: Deployment, spec: {template: {metadata: {labels: {a: b}}, spec: {resourceClaims: [{name: gpu}]}}}}`,
		},
		"with all that replaces the pods of a group": {
			wanted: group,
			live:   `{kind: LeaderWorkerSet, spec: {networkConfig: {subdomainPolicy: Shared}, leaderWorkerTemplate: {size: 2, restartPolicy: None, leaderTemplate: {metadata: {labels: {a: b}}, spec: {}}, workerTemplate: {spec: {hostNetwork: true}}}}}`,
			want:   `{kind: LeaderWorkerSet, metadata: {name: g}, spec: {replicas: 2, networkConfig: {subdomainPolicy: Shared}, leaderWorkerTemplate: {size: 2, restartPolicy: None, leaderTemplate: {metadata: {labels: {a: b}}, spec: {}}, workerTemplate: {spec: {hostNetwork: true}}}}}`,
		},
		"clique by clique": {
			adopted: `{kind: PodCliqueSet, spec: {template: {cliques: [
				{name: x, labels: {a: b}, spec: {podSpec: {containers: [{name: main, args: [ours]}]}}},
				{name: y, labels: {a: b}, spec: {podSpec: {containers: [{name: main, args: [earlier]}]}}}]}}}`,
			wanted: cliques,
			live: `{kind: PodCliqueSet, spec: {template: {cliques: [
				{name: x, labels: {a: b}, annotations: {k: v}, spec: {replicas: 1, podSpec: {containers: [{name: main, args: [theirs]}]}}},
				{name: y, labels: {a: b}, spec: {replicas: 1, podSpec: {containers: [{name: main, args: [theirs]}]}}}]}}}`,
			want: `{kind: PodCliqueSet, metadata: {name: p}, spec: {template: {cliques: [
				{name: x, labels: {a: b}, annotations: {k: v}, spec: {replicas: 3, podSpec: {containers: [{name: main, args: [theirs]}]}}},
				{name: y, labels: {a: b}, spec: {replicas: 4, podSpec: {containers: [{name: main, args: [ours]}]}}}]}}}`,
		},
		"and nothing else does": {
			wanted: `{kind: Service, spec: {selector: {a: b}}}`, live: `{kind: Service, spec: {selector: {c: d}}}`,
		},
	} {
		t.Run(rule, func(t *testing.T) {
			wanted := read(t, c.wanted)
			adopted, left := wanted, read(t, cmp.Or(c.left, c.live))
			if c.adopted != "" {
				adopted = read(t, c.adopted)
			}
			record, err := RecordOf(adopted, left)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Retain(wanted, read(t, c.live), ReadRecord(map[string]string{v1alpha1.AnnotationAdoptedTemplates: record.String()}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(read(t, c.wanted), wanted); diff != "" {
				t.Errorf("what is wanted was changed: %s", diff)
			}
			if c.want == "" {
				if diff := gocmp.Diff(wanted, got); diff != "" {
					t.Error(diff)
				}
				return
			}
			noted, _, err := unstructured.NestedString(got, "metadata", "annotations", v1alpha1.AnnotationAdoptedTemplates)
			if err != nil || noted == "" {
				t.Errorf("the record is lost: %v", err)
			}
			unstructured.RemoveNestedField(got, "metadata", "annotations")
			if diff := gocmp.Diff(read(t, c.want), got); diff != "" {
				t.Error(diff)
			}
			again, err := Retain(wanted, read(t, c.live), ReadRecord(map[string]string{v1alpha1.AnnotationAdoptedTemplates: noted}))
			if err != nil {
				t.Fatal(err)
			}
			unstructured.RemoveNestedField(again, "metadata", "annotations")
			if diff := gocmp.Diff(got, again); diff != "" {
				t.Errorf("the next look retains something else: %s", diff)
			}
		})
	}
}

package joboverride

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// ours is a Job before anything is put over it.
const ours = `
backoffLimit: 0
template:
  spec:
    serviceAccountName: dgdr-profiling-job
    restartPolicy: Never
    securityContext: {runAsUser: 1000, fsGroup: 1000}
    containers:
    - {name: profiler, image: p, command: [python], args: [--config], env: [{name: A, value: "1"}], volumeMounts: [{name: profiling-output, mountPath: /data}]}
    - {name: output-copier, image: c}
    volumes: [{name: profiling-output, emptyDir: {}}]
`

func read(t *testing.T, text string) *batchv1.JobSpec {
	t.Helper()
	job := &batchv1.JobSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		t.Fatal(err)
	}
	return job
}

func TestWhatAJobMayBeTold(t *testing.T) {
	for name, test := range map[string]struct {
		over    string
		want    func(*batchv1.JobSpec)
		ignored []string
	}{
		"where it runs": {
			over: `{template: {spec: {containers: [], tolerations: [{key: gpu, operator: Exists}], nodeSelector: {a: b}}}}`,
			want: func(j *batchv1.JobSpec) {
				o := read(t, `{template: {spec: {containers: [], tolerations: [{key: gpu, operator: Exists}], nodeSelector: {a: b}}}}`).Template.Spec
				j.Template.Spec.Tolerations, j.Template.Spec.NodeSelector = o.Tolerations, o.NodeSelector
			},
		},
		"a volume is replaced, not given a second source": {
			over: `{template: {spec: {containers: [], volumes: [{name: profiling-output, persistentVolumeClaim: {claimName: kept}}, {name: more, emptyDir: {}}]}}}`,
			want: func(j *batchv1.JobSpec) {
				j.Template.Spec.Volumes = read(t, `{template: {spec: {containers: [], volumes: [{name: profiling-output, persistentVolumeClaim: {claimName: kept}}, {name: more, emptyDir: {}}]}}}`).Template.Spec.Volumes
			},
		},
		"variables and resources of the profiler": {
			over: `{template: {spec: {containers: [{name: profiler, env: [{name: B, value: "2"}], resources: {limits: {cpu: "2"}}}]}}}`,
			want: func(j *batchv1.JobSpec) {
				o := read(t, `{template: {spec: {containers: [{name: profiler, env: [{name: A, value: "1"}, {name: B, value: "2"}], resources: {limits: {cpu: "2"}}}]}}}`).Template.Spec.Containers[0]
				j.Template.Spec.Containers[0].Env, j.Template.Spec.Containers[0].Resources = o.Env, o.Resources
			},
		},
		"an init container without an image means the container of its name": {
			over: `{template: {spec: {containers: [], initContainers: [{name: profiler, env: [{name: A, value: "3"}]}]}}}`,
			want: func(j *batchv1.JobSpec) { j.Template.Spec.Containers[0].Env[0].Value = "3" },
		},
		"how often and how long": {
			over: `{backoffLimit: 2, activeDeadlineSeconds: 60, template: {spec: {containers: []}}}`,
			want: func(j *batchv1.JobSpec) {
				j.BackoffLimit, j.ActiveDeadlineSeconds = new(int32(2)), new(int64(60))
			},
		},
		"not as whom": {
			over:    `{template: {spec: {containers: [], serviceAccountName: admin, automountServiceAccountToken: false}}}`,
			ignored: []string{"template.spec.automountServiceAccountToken", "template.spec.serviceAccountName"},
		},
		"nor which program": {
			over:    `{template: {spec: {containers: [{name: profiler, image: evil, command: [sh], args: [x]}, {name: output-copier, image: evil}, {name: other, image: evil}]}}}`,
			ignored: []string{"template.spec.containers[other]", "template.spec.containers[output-copier].image", "template.spec.containers[profiler].args", "template.spec.containers[profiler].command", "template.spec.containers[profiler].image"},
		},
		"nor on the node itself, nor several at a time": {
			over:    `{parallelism: 5, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {job-name: x, team: a}}, spec: {containers: [], hostNetwork: true, nodeName: n}}}`,
			want:    func(j *batchv1.JobSpec) { j.Template.Labels = map[string]string{"team": "a"} },
			ignored: []string{"parallelism", "selector", "template.metadata.labels.job-name", "template.spec.hostNetwork", "template.spec.nodeName"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, want, over := read(t, ours), read(t, ours), read(t, test.over)
			if err := Apply(got, over); err != nil {
				t.Fatal(err)
			}
			if test.want != nil {
				test.want(want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			ignored := Ignored(over)
			if diff := cmp.Diff(test.ignored, ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

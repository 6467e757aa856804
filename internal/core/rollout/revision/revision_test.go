package revision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

func decode[Object any](t *testing.T, text string) *Object {
	t.Helper()
	object := new(Object)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

const chat = `
metadata:
  name: chat
  namespace: llm
  uid: 1f0e
  annotations: {kubernetes.io/change-cause: faster decode, nvidia.com/rollout-steps: 1 hold}
spec:
  services:
    prefill: {componentType: worker, subComponentType: prefill, replicas: 2}
    decode: {componentType: worker, subComponentType: decode, replicas: 4, scalingAdapter: {enabled: true}}
  restart: {id: "7"}
`

func TestBuild(t *testing.T) {
	dgd := decode[v1alpha1.DynamoGraphDeployment](t, chat)
	r, err := Build(dgd, "3fa91c02", 8)
	if err != nil {
		t.Fatal(err)
	}
	data := string(r.Data.Raw)
	want := `{"kind":"DynamoGraphDeployment","apiVersion":"nvidia.com/v1alpha1","spec":{"services":{` +
		`"decode":{"scalingAdapter":{"enabled":true},"componentType":"worker","subComponentType":"decode"},` +
		`"prefill":{"componentType":"worker","subComponentType":"prefill","replicas":2}}}}`
	if diff := cmp.Diff(normal(t, want), normal(t, data)); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	yes := true
	meta := metav1.ObjectMeta{
		Name: r.Name, Namespace: "llm",
		Labels:          map[string]string{v1alpha1.LabelGraphName: "chat", v1alpha1.LabelManagedBy: "dynamo-operator", v1alpha1.LabelGeneration: "3fa91c02"},
		Annotations:     map[string]string{v1alpha1.AnnotationChangeCause: "faster decode"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "nvidia.com/v1alpha1", Kind: "DynamoGraphDeployment", Name: "chat", UID: "1f0e", Controller: &yes, BlockOwnerDeletion: &yes}},
	}
	if diff := cmp.Diff(meta, r.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if len(r.Name) != len("chat-")+hashDigits || r.Revision != 8 {
		t.Errorf("it is %s of number %d", r.Name, r.Revision)
	}
}

func normal(t *testing.T, text string) map[string]any {
	t.Helper()
	return *decode[map[string]any](t, text)
}

func TestNameFollowsTheSpec(t *testing.T) {
	name := func(change func(*v1alpha1.DynamoGraphDeployment)) string {
		dgd := decode[v1alpha1.DynamoGraphDeployment](t, chat)
		change(dgd)
		r, err := Build(dgd, "x", 1)
		if err != nil {
			t.Fatal(err)
		}
		return r.Name
	}
	before := name(func(*v1alpha1.DynamoGraphDeployment) {})
	n := int32(9)
	for rule, c := range map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment)
		same   bool
	}{
		"the replicas of an adapter are no part of it": {func(d *v1alpha1.DynamoGraphDeployment) { d.Spec.Services["decode"].Replicas = &n }, true},
		"nor is a restart":                {func(d *v1alpha1.DynamoGraphDeployment) { d.Spec.Restart.ID = "8" }, true},
		"nor are annotations":             {func(d *v1alpha1.DynamoGraphDeployment) { d.Annotations["a"] = "b" }, true},
		"replicas of the user are":        {func(d *v1alpha1.DynamoGraphDeployment) { d.Spec.Services["prefill"].Replicas = &n }, false},
		"so is what only v1beta1 can say": {func(d *v1alpha1.DynamoGraphDeployment) { d.Annotations[v1alpha1.AnnotationGraphPayload] = "{}" }, false},
	} {
		t.Run(rule, func(t *testing.T) {
			if now := name(c.change); (now == before) != c.same {
				t.Errorf("%s was %s before the change", now, before)
			}
		})
	}
}

func TestRestore(t *testing.T) {
	old := decode[v1alpha1.DynamoGraphDeployment](t, chat)
	r, err := Build(old, "old", 1)
	if err != nil {
		t.Fatal(err)
	}
	live := decode[v1alpha1.DynamoGraphDeployment](t, `
metadata: {name: chat, namespace: llm, resourceVersion: "12", annotations: {nvidia.com/written-as: v1beta1, nvidia.com/dgd-spec: "{}"}}
spec:
  services:
    decode: {componentType: worker, subComponentType: decode, replicas: 6, scalingAdapter: {enabled: true}}
    extra: {componentType: worker}
  restart: {id: "9"}
`)
	got, err := Restore(live, r)
	if err != nil {
		t.Fatal(err)
	}
	want := decode[v1alpha1.DynamoGraphDeployment](t, `
metadata: {name: chat, namespace: llm, resourceVersion: "12", annotations: {}}
spec:
  services:
    prefill: {componentType: worker, subComponentType: prefill, replicas: 2}
    decode: {componentType: worker, subComponentType: decode, replicas: 6, scalingAdapter: {enabled: true}}
  restart: {id: "9"}
`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for rule, data := range map[string]string{"what is no JSON": "{", "another kind": `{"kind":"StatefulSet","apiVersion":"apps/v1"}`} {
		if _, err := Restore(live, &appsv1.ControllerRevision{Data: raw(data)}); err == nil {
			t.Errorf("%s is restored", rule)
		}
	}
}

// TestRestoreOfWhatWasWrittenAsBeta: what only v1beta1 can say comes back, although a
// scaling adapter has decided the replicas since.
func TestRestoreOfWhatWasWrittenAsBeta(t *testing.T) {
	written := decode[v1beta1.DynamoGraphDeployment](t, `
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat, namespace: llm}
spec:
  components:
    - name: decode
      type: decode
      replicas: 4
      scalingAdapter: {}
      podTemplate:
        spec:
          containers:
            - {name: main, image: "runtime:1.5.0", ports: [{containerPort: 9999}]}
            - {name: side, image: "side:1"}
`)
	alpha, _ := conversion.GraphToAlpha(written)
	if conversion.WrittenAs(alpha) != conversion.Beta {
		t.Fatal("nothing tells that it was written as v1beta1")
	}
	r, err := Build(alpha, "old", 1)
	if err != nil {
		t.Fatal(err)
	}
	live := decode[v1alpha1.DynamoGraphDeployment](t, `{metadata: {name: chat, namespace: llm}, spec: {services: {decode: {replicas: 6}}}}`)
	restored, err := Restore(live, r)
	if err != nil {
		t.Fatal(err)
	}
	back, lost := conversion.GraphToBeta(restored)
	n := int32(6)
	written.Spec.Components[0].Replicas = &n
	if diff := cmp.Diff(written.Spec, back.Spec); diff != "" || len(lost) > 0 {
		t.Errorf("lost %v (-want +got):\n%s", lost, diff)
	}
}

func TestResult(t *testing.T) {
	r := numbered("a", 1, "")
	at := metav1.NewTime(time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC))
	record := Record{StartedAt: &at, Lowest: map[string]int32{"decode": 3}, PeakGPUs: 5, Reason: "Crashed", StartSeconds: map[string]int32{"decode": 240}}
	got, err := WithResult(r, Aborted, record)
	if err != nil {
		t.Fatal(err)
	}
	back := RecordOf(got)
	if diff := cmp.Diff(record, back, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" || ResultOf(got) != Aborted {
		t.Errorf("result %s (-want +got):\n%s", ResultOf(got), diff)
	}
	if ResultOf(r) != Undecided {
		t.Error("the revision that was given has changed")
	}
	got.Annotations[v1alpha1.AnnotationRolloutRecord] = "{"
	if diff := cmp.Diff(Record{}, RecordOf(got)); diff != "" {
		t.Errorf("a record that cannot be read is none (-want +got):\n%s", diff)
	}
	now := numbered("b", 7, "")
	renewed := Renewed(got, now)
	if ResultOf(renewed) != Undecided || renewed.Revision != 7 || Generation(renewed) != "b" || renewed.Name != got.Name {
		t.Errorf("rolled out again it is %+v", renewed)
	}
}

func TestFinding(t *testing.T) {
	all := []*appsv1.ControllerRevision{
		numbered("d", 4, Aborted), numbered("a", 1, Completed), numbered("c", 3, Superseded), numbered("b", 2, Completed), numbered("e", 5, Undecided),
	}
	generation := func(r *appsv1.ControllerRevision) string {
		if r == nil {
			return "none"
		}
		return Generation(r)
	}
	for rule, c := range map[string]struct{ got, want string }{
		"stable is the newest that completed":              {generation(Stable(all)), "b"},
		"before stable there is the one before":            {generation(Before(all, "b")), "a"},
		"an aborted one is left for the stable one":        {generation(Before(all, "d")), "b"},
		"a generation has a revision":                      {generation(OfGeneration(all, "c")), "c"},
		"or none":                                          {generation(OfGeneration(all, "x")), "none"},
		"a number has a revision":                          {generation(Numbered(all, 4)), "d"},
		"without a completed one there is nothing to undo": {generation(Before(all[:1], "d")), "none"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", rule, c.got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"d"}, AbortedGenerations(all)); diff != "" {
		t.Errorf("aborted (-want +got):\n%s", diff)
	}
	if n := Next(all); n != 6 {
		t.Errorf("the next one is %d", n)
	}
	if n := Next(nil); n != 1 {
		t.Errorf("the first one is %d", n)
	}
}

func TestSurplus(t *testing.T) {
	all := []*appsv1.ControllerRevision{
		numbered("e", 5, Undecided), numbered("a", 1, Completed), numbered("b", 2, Completed), numbered("c", 3, Aborted), numbered("d", 4, Aborted),
	}
	for rule, c := range map[string]struct {
		limit int
		live  []string
		want  []string
	}{
		"as many as the limit stay":     {limit: 5},
		"the oldest go first":           {limit: 4, want: []string{"a"}},
		"the stable one stays":          {limit: 3, want: []string{"a", "c"}},
		"those that are alive stay":     {limit: 3, live: []string{"a", "e"}, want: []string{"c", "d"}},
		"even if more stay than should": {limit: 1, live: []string{"a", "c", "d", "e"}},
	} {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, r := range Surplus(all, c.limit, c.live) {
				got = append(got, Generation(r))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSurplusOfOneGeneration(t *testing.T) {
	all := []*appsv1.ControllerRevision{
		numbered("a", 1, Completed), numbered("b", 2, Completed), numbered("b", 3, Completed), numbered("b", 4, Completed), numbered("b", 5, Aborted),
	}
	for rule, c := range map[string]struct {
		limit int
		live  []string
		want  []int64
	}{
		"specs that the same workers had since go first": {limit: 3, want: []int64{2, 3}},
		"though these live": {limit: 3, live: []string{"b"}, want: []int64{2, 3}},
		"then the oldest":   {limit: 2, want: []int64{2, 3, 1}},
	} {
		t.Run(rule, func(t *testing.T) {
			var got []int64
			for _, r := range Surplus(all, c.limit, c.live) {
				got = append(got, r.Revision)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func numbered(generation string, number int64, result Result) *appsv1.ControllerRevision {
	r := &appsv1.ControllerRevision{Revision: number}
	r.Name = "chat-" + generation
	r.Labels = map[string]string{v1alpha1.LabelGeneration: generation}
	if result != Undecided {
		r.Annotations = map[string]string{v1alpha1.AnnotationRolloutResult: string(result)}
	}
	return r
}

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

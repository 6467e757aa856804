package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/exit"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

const rolling = `
metadata:
  name: chat
  namespace: llm
  uid: 1f0e
  generation: 4
  annotations: {nvidia.com/rollout-steps: "1 5m, 50% hold", nvidia.com/workload-provider: component}
spec:
  services:
    decode: {componentType: worker, subComponentType: decode, replicas: 4}
status:
  observedGeneration: 4
  rollout:
    revision: 8
    target: 3fa91c02
    stable: 91c0aa17
    phase: Held
    reason: StepHold
    message: step 2 of 2 waits for a promotion
    step: 2/2
    startedAt: "2026-11-16T12:00:00Z"
    progressedAt: "2026-11-16T12:09:00Z"
    gpus: {now: 5, peak: 6}
    roles: {decode: {desired: 4, floor: 3, effective: 4, lowest: 3}}
    generations:
      - {id: 3fa91c02, revision: 8, share: 50%, roles: {decode: {replicas: 2, routable: 2}}}
      - {id: 91c0aa17, revision: 7, share: 50%, roles: {decode: {replicas: 2, routable: 2, leaving: 1}}}
    analysis: {verdict: pass, errors: [1.0%, 1.1%], ttftP95: [850ms, 840ms], samples: 812}
`

func decoded(t *testing.T) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := yaml.UnmarshalStrict([]byte(rolling), dgd); err != nil {
		t.Fatal(err)
	}
	return dgd
}

// revisions are 7, completed with three replicas, and 8, which is what runs.
func revisions(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, result revision.Result) []client.Object {
	t.Helper()
	old := dgd.DeepCopy()
	n := int32(3)
	old.Spec.Services["decode"].Replicas = &n
	start := metav1.NewTime(time.Date(2026, 11, 15, 9, 0, 0, 0, time.UTC))
	end := metav1.NewTime(start.Add(12 * time.Minute))
	var all []client.Object
	for _, c := range []struct {
		of     *v1alpha1.DynamoGraphDeployment
		id     string
		number int64
		result revision.Result
		record revision.Record
	}{
		{old, "91c0aa17", 7, revision.Completed, revision.Record{StartedAt: &start, EndedAt: &end, Lowest: map[string]int32{"decode": 3}, PeakGPUs: 5}},
		{dgd, "3fa91c02", 8, result, revision.Record{}},
	} {
		r, err := revision.Build(c.of, c.id, c.number)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = revision.WithResult(r, c.result, c.record); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func aim(objects ...client.Object) target {
	return target{fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build(), "llm", "chat"}
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	if end, ok := errors.AsType[exit.With](err); ok {
		return end.Code
	}
	return 1
}

func TestStatus(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment)
		code   int
	}{
		"held":         {func(*v1alpha1.DynamoGraphDeployment) {}, codeWaits},
		"timed":        {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Reason = "StepTime" }, codeNotDone},
		"paused":       {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Reason = "Paused" }, codeWaits},
		"blocked":      {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Phase = "Blocked" }, codeWaits},
		"completed":    {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Phase = "Completed" }, 0},
		"aborted":      {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Phase = "Aborted" }, codeAborted},
		"never-rolled": {func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout = nil }, 0},
		"not-seen-yet": {func(d *v1alpha1.DynamoGraphDeployment) { d.Generation = 5 }, codeNotDone},
		"without-an-id": {func(d *v1alpha1.DynamoGraphDeployment) {
			d.Status.Rollout.Stable, d.Status.Rollout.Phase = "", "Shifting"
		}, codeNotDone},
	} {
		t.Run(name, func(t *testing.T) {
			dgd := decoded(t)
			c.change(dgd)
			golden.Text(t, filepath.Join("testdata", "status-"+name+".txt"), strings.Join(lines(dgd), "\n")+"\n")
			if got := codeOf(ended(dgd)); got != c.code {
				t.Errorf("the code is %d, want %d", got, c.code)
			}
		})
	}
}

func TestFollowEnds(t *testing.T) {
	dgd := decoded(t)
	var out bytes.Buffer
	if got := codeOf(aim(dgd).follow(context.Background(), &out, 0)); got != codeWaits {
		t.Errorf("the code of a held rollout is %d, want %d", got, codeWaits)
	}
	dgd.Status.Rollout.Phase = "Shifting"
	if got := codeOf(aim(dgd).follow(context.Background(), &out, time.Nanosecond)); got != codeNotDone {
		t.Errorf("the code after the timeout is %d, want %d", got, codeNotDone)
	}
}

func TestOrders(t *testing.T) {
	ctx := context.Background()
	for rule, c := range map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment)
		order  func(target, *bytes.Buffer) error
		want   map[string]string // annotations that differ from before
		says   string
		code   int
	}{
		"pause":                   {order: func(t target, b *bytes.Buffer) error { return t.pause(ctx, b, "true", "paused") }, want: map[string]string{v1alpha1.AnnotationRolloutPaused: "true"}, says: "chat: paused\n"},
		"promote passes the step": {order: func(t target, b *bytes.Buffer) error { return t.promote(ctx, b, false) }, want: map[string]string{v1alpha1.AnnotationRolloutPromote: "3fa91c02/2"}, says: "chat: generation 3fa91c02 may pass step 2 of 2\n"},
		"promote all passes all":  {order: func(t target, b *bytes.Buffer) error { return t.promote(ctx, b, true) }, want: map[string]string{v1alpha1.AnnotationRolloutPromote: "3fa91c02/all"}, says: "chat: generation 3fa91c02 may pass all steps\n"},
		"promote all passes what is held after a failure, without steps too": {change: func(d *v1alpha1.DynamoGraphDeployment) {
			delete(d.Annotations, v1alpha1.AnnotationRolloutSteps)
			d.Status.Rollout.Phase, d.Status.Rollout.Reason = "Held", "CandidateCrashed"
		}, order: func(t target, b *bytes.Buffer) error { return t.promote(ctx, b, true) }, want: map[string]string{v1alpha1.AnnotationRolloutPromote: "3fa91c02/all"}, says: "chat: generation 3fa91c02 may pass all steps\n"},
		"abort names the candidate":                {order: func(t target, b *bytes.Buffer) error { return t.abort(ctx, b) }, want: map[string]string{v1alpha1.AnnotationRolloutAbort: "3fa91c02"}, says: "chat: generation 3fa91c02 is to be aborted\n"},
		"what is done is not aborted":              {change: func(d *v1alpha1.DynamoGraphDeployment) { d.Status.Rollout.Phase = "Completed" }, order: func(t target, b *bytes.Buffer) error { return t.abort(ctx, b) }, code: 1},
		"an order is about the spec that was seen": {change: func(d *v1alpha1.DynamoGraphDeployment) { d.Status.ObservedGeneration = 3 }, order: func(t target, b *bytes.Buffer) error { return t.promote(ctx, b, true) }, code: 1},
		"retry names what was aborted": {change: func(d *v1alpha1.DynamoGraphDeployment) {
			d.Status.Rollout.Phase, d.Status.Rollout.Target = "Aborted", "91c0aa17"
		}, order: func(t target, b *bytes.Buffer) error { return t.retry(ctx, b) }, want: map[string]string{v1alpha1.AnnotationRolloutRetry: "3fa91c02"}, says: "chat: generation 3fa91c02 is to be tried again\n"},
		"what was not aborted is not retried": {order: func(t target, b *bytes.Buffer) error { return t.retry(ctx, b) }, code: 1},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decoded(t)
			if c.change != nil {
				c.change(dgd)
			}
			to := aim(append(revisions(t, dgd, revision.Aborted), dgd)...)
			var out bytes.Buffer
			err := c.order(to, &out)
			if codeOf(err) != c.code || out.String() != c.says {
				t.Errorf("%v, says %q, want %q", err, out.String(), c.says)
			}
			got, changed := &v1alpha1.DynamoGraphDeployment{}, map[string]string(nil)
			if err := to.Get(ctx, types.NamespacedName{Namespace: "llm", Name: "chat"}, got); err != nil {
				t.Fatal(err)
			}
			for key, value := range got.Annotations {
				if dgd.Annotations[key] != value {
					if changed == nil {
						changed = map[string]string{}
					}
					changed[key] = value
				}
			}
			if diff := cmp.Diff(c.want, changed); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUndo(t *testing.T) {
	ctx := context.Background()
	argo := []metav1.ManagedFieldsEntry{{Manager: "argocd-controller", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
	for rule, c := range map[string]struct {
		undo    undoing
		fields  []metav1.ManagedFieldsEntry
		code    int
		written bool
		printed bool
	}{
		"the last completed revision is written back": {written: true},
		"a revision by number":                        {undo: undoing{revision: 7}, written: true},
		"one that is not there":                       {undo: undoing{revision: 3}, code: 1},
		"a dry run prints":                            {undo: undoing{dryRun: true}, printed: true},
		"Argo CD would win, so it is printed":         {fields: argo, code: codeWaits, printed: true},
		"unless it is forced":                         {fields: argo, undo: undoing{force: true}, written: true},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decoded(t)
			to := aim(append(revisions(t, dgd, revision.Undecided), dgd)...)
			to.WithWatch = keeping{to.WithWatch, c.fields}
			var out, notes bytes.Buffer
			if err := to.undo(ctx, &out, &notes, c.undo); codeOf(err) != c.code {
				t.Fatalf("%v, want code %d", err, c.code)
			}
			got, err := to.graph(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if written := *got.Spec.Services["decode"].Replicas == 3; written != c.written {
				t.Errorf("written %v, want %v", written, c.written)
			}
			if c.printed {
				golden.Text(t, filepath.Join("testdata", "undo.yaml"), out.String())
			}
		})
	}
}

// TestAPrintedManifestIsOfTheVersionThatItsGraphWasWrittenAs wherever it is applied.
func TestAPrintedManifestIsOfTheVersionThatItsGraphWasWrittenAs(t *testing.T) {
	claims := []v1alpha1.PVC{{Name: "cache"}}
	for rule, c := range map[string]struct {
		written string
		claims  []v1alpha1.PVC
		says    string
	}{
		"v1alpha1":                            {conversion.Alpha, claims, ""},
		"v1beta1":                             {conversion.Beta, nil, ""},
		"v1beta1 with claims from v1alpha1's": {conversion.Beta, claims, conversion.Beta},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decoded(t)
			dgd.Spec.PVCs = c.claims
			if c.written == conversion.Beta {
				dgd.Annotations[v1alpha1.AnnotationWrittenAs] = conversion.Beta
			}
			fields, err := manifest(dgd)
			if err != nil {
				t.Fatal(err)
			}
			printed := unstructured.Unstructured{Object: fields}
			if diff := cmp.Diff(c.says, printed.GetAnnotations()[v1alpha1.AnnotationWrittenAs]); diff != "" {
				t.Errorf("the annotation (-want +got):\n%s", diff)
			}
			text, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := conversion.Convert(text, v1alpha1.SchemeGroupVersion.String())
			if err != nil {
				t.Fatal(err)
			}
			made := &v1alpha1.DynamoGraphDeployment{}
			if err := json.Unmarshal(stored.JSON, made); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.written, conversion.WrittenAs(made)); diff != "" {
				t.Errorf("what is applied (-want +got):\n%s", diff)
			}
		})
	}
}

// keeping has the managed fields that a test says: the fake client keeps its own.
type keeping struct {
	client.WithWatch
	fields []metav1.ManagedFieldsEntry
}

func (k keeping) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := k.WithWatch.Get(ctx, key, object, options...)
	object.SetManagedFields(k.fields)
	return err
}

func TestHistory(t *testing.T) {
	dgd := decoded(t)
	foreign := revisions(t, dgd, revision.Completed)[0].(*appsv1.ControllerRevision)
	foreign.Name, foreign.Revision, foreign.OwnerReferences[0].UID = "chat-forged", 99, "other"
	to := aim(append(revisions(t, dgd, revision.Undecided), dgd, foreign)...)
	for name, number := range map[string]int64{"history.txt": 0, "history-7.yaml": 7} {
		var out bytes.Buffer
		if err := to.history(context.Background(), &out, number); err != nil {
			t.Fatal(err)
		}
		golden.Text(t, filepath.Join("testdata", name), out.String())
	}
	if err := to.history(context.Background(), &bytes.Buffer{}, 99); err == nil {
		t.Error("a revision that another object owns is shown")
	}
}

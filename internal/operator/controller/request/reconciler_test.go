package request

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// world is a reconciler over a cluster in memory.
type world struct {
	*testing.T
	client.Client
	r      *Reconciler
	writes int
}

func newWorld(t *testing.T) *world {
	w := &world{T: t}
	index := func(object client.Object) []string {
		var uids []string
		for _, ref := range object.GetOwnerReferences() {
			uids = append(uids, string(ref.UID))
		}
		return uids
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme.New()).
		WithStatusSubresource(&v1alpha1.DynamoGraphDeploymentRequest{}, &v1alpha1.DynamoGraphDeployment{}, &batchv1.Job{}).
		WithIndex(&batchv1.Job{}, "metadata.ownerUID", index).
		WithIndex(&v1alpha1.DynamoGraphDeployment{}, "metadata.ownerUID", index).
		WithReturnManagedFields().
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				w.writes++
				return c.Apply(ctx, object, options...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				w.writes++
				return c.SubResource(sub).Patch(ctx, object, patch, options...)
			},
		}).Build()
	applier, err := apply.New(w.Client, w.Client, &corev1.ConfigMap{}, &batchv1.Job{})
	if err != nil {
		t.Fatal(err)
	}
	w.r = &Reconciler{
		Client: w.Client,
		World: observe.Requests{
			Facts: observe.Facts{Cached: w.Client, Direct: w.Client}, Kept: w.Client, Children: observe.New(w.Client, Children()...),
		},
		Applier:   applier,
		Events:    events.NewFakeRecorder(100),
		Clock:     clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)),
		Policy:    requestplan.Policy{Image: "ours", Deadline: time.Hour, Scope: validation.Scope{ClusterWide: true}},
		Profiling: render.Profiling{Image: "ours", Role: "profiler"},
	}
	w.make(&v1alpha1.DynamoGraphDeploymentRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "goal", UID: "u1", Generation: 1},
		Spec: v1alpha1.DynamoGraphDeploymentRequestSpec{
			Model: "m", Backend: "vllm", AutoApply: true,
			ProfilingConfig: v1alpha1.ProfilingConfig{ProfilerImage: "ours", Config: &runtime.RawExtension{Raw: []byte(`{"sla":{"ttft":200}}`)}},
		},
	})
	return w
}

func (w *world) make(object client.Object) {
	w.Helper()
	if err := w.Create(w.Context(), object); err != nil {
		w.Fatal(err)
	}
}

func (w *world) read(object client.Object, name string) {
	w.Helper()
	if err := w.Get(w.Context(), types.NamespacedName{Namespace: "team", Name: name}, object); err != nil {
		w.Fatal(err)
	}
}

func (w *world) request() *v1alpha1.DynamoGraphDeploymentRequest {
	w.Helper()
	r := &v1alpha1.DynamoGraphDeploymentRequest{}
	w.read(r, "goal")
	return r
}

// settle reconciles until nothing is written any more, and returns the states seen.
func (w *world) settle() []v1alpha1.RequestState {
	w.Helper()
	var states []v1alpha1.RequestState
	for range 20 {
		before := w.writes
		if _, err := w.r.Reconcile(w.Context(), w.request()); err != nil {
			w.Fatal(err)
		}
		if w.writes == before {
			return states
		}
		if state := w.request().Status.State; len(states) == 0 || states[len(states)-1] != state {
			states = append(states, state)
		}
	}
	w.Fatal("it never settles")
	return nil
}

func (w *world) expect(when string, want ...v1alpha1.RequestState) {
	w.Helper()
	if diff := cmp.Diff(want, w.settle()); diff != "" {
		w.Errorf("%s: states (-want +got):\n%s\n%+v", when, diff, w.request().Status.Conditions)
	}
}

// finish ends the Job with a result.
func (w *world) finish(kind batchv1.JobConditionType, found profileoutput.Result) {
	w.Helper()
	output := &corev1.ConfigMap{}
	w.read(output, "dgdr-output-goal")
	output.Data = map[string]string{profileoutput.KeyResult: found.Text()}
	if err := w.Update(w.Context(), output); err != nil {
		w.Fatal(err)
	}
	job := &batchv1.Job{}
	w.read(job, "profile-goal")
	receipt := profileoutput.Receipt{}
	receipt.Add(output.Name, output.Data)
	if kind == batchv1.JobComplete {
		w.make(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: "profile-goal-x", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
				Name: requestplan.ProfilerContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: receipt.Text()}},
			}}},
		})
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
	if err := w.Status().Update(w.Context(), job); err != nil {
		w.Fatal(err)
	}
}

var success = profileoutput.Result{
	State: profileoutput.Succeeded, SLAMet: true,
	GeneratedDeployment: "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: x}\nspec: {services: {Frontend: {}}}\n",
}

func TestARequestBecomesAGraphAndFollowsIt(t *testing.T) {
	w := newWorld(t)
	w.expect("accepted", "Pending", "Profiling")
	w.finish(batchv1.JobComplete, success)
	w.expect("profiled", "Deploying")
	dgd := &v1alpha1.DynamoGraphDeployment{}
	w.read(dgd, "goal")
	dgd.Status.State = v1alpha1.GraphStateSuccessful
	if err := w.Status().Update(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	w.expect("up", "Ready")
	if err := w.Delete(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	w.expect("deleted", "DeploymentDeleted")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(dgd), dgd); err == nil {
		t.Error("the graph was made again")
	}
}

// TestABetaRequestShowsItsPhases follows one that was written as v1beta1, as
// v1beta1 shows it.
func TestABetaRequestShowsItsPhases(t *testing.T) {
	w := newWorld(t)
	r := w.request()
	r.Annotations = map[string]string{v1alpha1.AnnotationWrittenAs: "v1beta1", v1alpha1.AnnotationRequestPayload: `{"version":1,"spec":{"model":"","hardware":{"gpuSku":"h200_sxm"}}}`}
	if err := w.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	shows := func(when string, phase v1beta1.RequestPhase, profiling, succeeded string) *v1beta1.DynamoGraphDeploymentRequest {
		t.Helper()
		w.settle()
		beta, _ := conversion.RequestToBeta(w.request())
		s := beta.Status
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSucceeded)
		if c == nil || s.Phase != phase || s.ProfilingPhase != profiling || c.Reason != succeeded || (c.Status == metav1.ConditionTrue) != (phase == v1beta1.RequestPhaseDeployed) {
			t.Errorf("%s: phase %s, profiling %s, Succeeded %+v", when, s.Phase, s.ProfilingPhase, c)
		}
		return beta
	}
	shows("accepted", v1beta1.RequestPhaseProfiling, "Initializing", v1alpha1.ReasonProfilingRunning)
	w.finish(batchv1.JobComplete, success)
	shows("profiled", v1beta1.RequestPhaseDeploying, "Done", v1alpha1.ReasonDeploymentCreated)
	dgd := &v1alpha1.DynamoGraphDeployment{}
	w.read(dgd, "goal-dgd")
	dgd.Status.State = v1alpha1.GraphStateSuccessful
	dgd.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"Frontend": {Replicas: 2, AvailableReplicas: new(int32(1))}, "w": {Replicas: 1, ReadyReplicas: new(int32(1))}}
	if err := w.Status().Update(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	beta := shows("up", v1beta1.RequestPhaseDeployed, "Done", v1alpha1.ReasonDeploymentReady)
	if s := beta.Status; s.DGDName != "goal-dgd" || s.ProfilingJobName != "profile-goal" || *s.DeploymentInfo.Replicas != 3 || *s.DeploymentInfo.AvailableReplicas != 2 {
		t.Errorf("it shows %+v", s)
	}
	if err := w.Delete(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	shows("deleted", v1beta1.RequestPhaseFailed, "Done", v1alpha1.ReasonDeploymentDeleted)
}

// TestARequestThatTheOriginalDeployedStaysReady: its status has the name of the
// graph, and no namespace.
func TestARequestThatTheOriginalDeployedStaysReady(t *testing.T) {
	w := newWorld(t)
	stored, _ := conversion.RequestToAlpha(&v1beta1.DynamoGraphDeploymentRequest{Status: v1beta1.DynamoGraphDeploymentRequestStatus{
		ObservedGeneration: 1, Phase: v1beta1.RequestPhaseDeployed, DGDName: "goal-dgd",
		ProfilingResults: &v1beta1.ProfilingResults{SelectedConfig: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"nvidia.com/v1beta1","kind":"DynamoGraphDeployment","spec":{}}`)}},
		Conditions:       []metav1.Condition{{Type: v1alpha1.ConditionSpecGenerated, Status: metav1.ConditionTrue}},
	}})
	r := w.request()
	r.Annotations = stored.Annotations
	if err := w.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Status = stored.Status
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "goal-dgd", Labels: map[string]string{v1alpha1.LabelRequestName: "goal", v1alpha1.LabelRequestNamespace: "team"},
	}}
	w.make(dgd)
	dgd.Status.State = v1alpha1.GraphStateSuccessful
	for _, object := range []client.Object{r, dgd} {
		if err := w.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("taken over", "Ready")
	want := &v1alpha1.RequestedDeployment{Name: "goal-dgd", Namespace: "team", State: v1alpha1.GraphStateSuccessful, Created: true}
	if diff := cmp.Diff(want, w.request().Status.Deployment); diff != "" {
		t.Errorf("its graph (-want +got):\n%s", diff)
	}
}

func TestAFailedRequestBeginsAnewWhenEdited(t *testing.T) {
	w := newWorld(t)
	w.expect("accepted", "Pending", "Profiling")
	w.finish(batchv1.JobFailed, profileoutput.Result{State: profileoutput.Failed, Reason: profileoutput.ReasonUnknownModel, Message: "who is m?"})
	w.expect("failed", "Failed")
	profiling := meta.FindStatusCondition(w.request().Status.Conditions, v1alpha1.ConditionProfiling)
	if profiling == nil || profiling.Reason != "UnknownModel" || profiling.Message != "who is m?" {
		t.Errorf("the profiler is not quoted: %+v", profiling)
	}
	r := w.request()
	r.Spec.Model, r.Generation = "n", 2
	if err := w.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.expect("edited", "", "Pending", "Profiling")
	input := &corev1.ConfigMap{}
	w.read(input, "dgdr-input-goal")
	record, err := requestplan.Recorded(w.request())
	if err != nil {
		t.Fatal(err)
	}
	if record.Spec.Model != "n" || input.Annotations[v1alpha1.AnnotationProfilingAttempt] != "2" {
		t.Errorf("the new attempt goes by %+v", record.Spec)
	}
}

func TestAnEditHalfWayChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.expect("accepted", "Pending", "Profiling")
	r := w.request()
	r.Spec.AutoApply, r.Generation = false, 2
	if err := w.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if r = w.request(); r.Status.ObservedGeneration != 1 || meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionValidation) {
		t.Errorf("the edit is not rejected: %+v", r.Status)
	}
	w.finish(batchv1.JobComplete, success)
	w.expect("profiled", "Deploying") // as it was accepted, with autoApply
	r = w.request()
	r.Spec.AutoApply, r.Generation = true, 3
	if err := w.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if r = w.request(); r.Status.ObservedGeneration != 3 || !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionValidation) {
		t.Errorf("the edit that was undone is not forgiven: %+v", r.Status)
	}
}

// TestARequestThatIsMadeAgainDoesNotTakeWhatTheOneBeforeItLeft: graphs outlive
// requests, and the same name does not make an old one the answer to another goal.
func TestARequestThatIsMadeAgainDoesNotTakeWhatTheOneBeforeItLeft(t *testing.T) {
	other := success
	other.GeneratedDeployment = strings.Replace(success.GeneratedDeployment, "Frontend: {}", "Frontend: {replicas: 7}", 1)
	for rule, test := range map[string]struct {
		found  profileoutput.Result
		state  v1alpha1.RequestState
		reason string
	}{
		"another graph was found":  {other, v1alpha1.RequestStateDeploying, v1alpha1.ReasonDeploymentNameTaken},
		"the same graph was found": {success, v1alpha1.RequestStateReady, v1alpha1.ReasonDeploymentReady},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t)
			w.settle()
			w.finish(batchv1.JobComplete, success)
			w.settle()
			left := &v1alpha1.DynamoGraphDeployment{}
			w.read(left, "goal")
			left.Status.State = v1alpha1.GraphStateSuccessful
			if err := w.Status().Update(t.Context(), left); err != nil {
				t.Fatal(err)
			}
			again := w.request()
			for object, name := range map[client.Object]string{
				again: "goal", &batchv1.Job{}: "profile-goal", &corev1.Pod{}: "profile-goal-x",
				&corev1.ConfigMap{}: "dgdr-input-goal", &corev1.ConfigMap{Data: map[string]string{}}: "dgdr-output-goal",
			} {
				w.read(object, name)
				if err := w.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			w.make(&v1alpha1.DynamoGraphDeploymentRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "goal", UID: "u2", Generation: 1}, Spec: again.Spec})
			w.settle()
			w.finish(batchv1.JobComplete, test.found)
			w.settle()
			s := w.request().Status
			if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDeploymentReady); s.State != test.state || ready == nil || ready.Reason != test.reason {
				t.Errorf("state %s, %+v; want %s for %s", s.State, ready, test.state, test.reason)
			}
			is := &v1alpha1.DynamoGraphDeployment{}
			w.read(is, "goal")
			if diff := cmp.Diff(left.Spec, is.Spec); diff != "" {
				t.Errorf("the graph was changed: -want +got\n%s", diff)
			}
			if test.state == v1alpha1.RequestStateReady {
				return
			}
			if err := w.Delete(t.Context(), is); err != nil {
				t.Fatal(err)
			}
			w.settle()
			w.read(is, "goal")
			if got := is.Annotations[v1alpha1.AnnotationRequestUID]; got != "u2" {
				t.Errorf("once the name is free its graph is made; this is one of %q", got)
			}
		})
	}
}

func TestAGraphOfSomebodyElseIsNotTaken(t *testing.T) {
	w := newWorld(t)
	foreign := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "goal"}}
	w.make(foreign)
	w.expect("accepted", "Pending", "Profiling")
	w.finish(batchv1.JobComplete, success)
	for range 5 { // a conflict is an error that is tried again
		_, _ = w.r.Reconcile(t.Context(), w.request())
	}
	ready := meta.FindStatusCondition(w.request().Status.Conditions, v1alpha1.ConditionDeploymentReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeploymentNameTaken {
		t.Fatalf("nothing says that the name is taken: %+v", ready)
	}
	w.read(foreign, "goal")
	if len(foreign.Labels) > 0 || len(foreign.Spec.Services) > 0 {
		t.Errorf("it was written to: %+v", foreign)
	}
	if err := w.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.read(foreign, "goal")
	if foreign.Labels[v1alpha1.LabelRequestName] != "goal" {
		t.Error("the name is free and not taken")
	}
}

func TestGraphsThatWereTriedOutAreRemoved(t *testing.T) {
	w := newWorld(t)
	w.expect("accepted", "Pending", "Profiling")
	tried := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "goal-tp2-ab12",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "nvidia.com/v1alpha1", Kind: "DynamoGraphDeploymentRequest", Name: "goal", UID: "u1"}},
	}}
	w.make(tried)
	w.settle()
	w.read(tried, tried.Name) // not while somebody may be trying it
	w.finish(batchv1.JobFailed, profileoutput.Result{State: profileoutput.Failed, Reason: profileoutput.ReasonInterrupted, Message: "killed"})
	w.expect("failed", "Failed")
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(tried), tried); err == nil {
		t.Error("it goes on running")
	}
}

// TestNobodyElseSpeaksForARequest plays somebody who may write every ConfigMap of
// the namespace and nothing else.
func TestNobodyElseSpeaksForARequest(t *testing.T) {
	const evil = `{"model":"m","backend":"vllm","autoApply":true,"deploymentOverrides":{"namespace":"victim"},"profilingConfig":{"profilerImage":"evil","config":{}}}`
	labels := map[string]string{v1alpha1.LabelRequestName: "goal", v1alpha1.LabelRequestNamespace: "team", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	inVictim := func(w *world) int {
		var graphs v1alpha1.DynamoGraphDeploymentList
		if err := w.List(w.Context(), &graphs, client.InNamespace("victim")); err != nil {
			w.Fatal(err)
		}
		return len(graphs.Items)
	}
	t.Run("a record that is made beforehand is not accepted", func(t *testing.T) {
		w := newWorld(t)
		w.make(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "dgdr-input-goal", Labels: labels, Annotations: map[string]string{v1alpha1.AnnotationProfilingAttempt: "1"}},
			Data:       map[string]string{"spec.json": evil, requestplan.KeyConfig: "evil"},
		})
		for range 5 { // a conflict is an error that is tried again
			_, _ = w.r.Reconcile(t.Context(), w.request())
		}
		if c := meta.FindStatusCondition(w.request().Status.Conditions, v1alpha1.ConditionProfiling); c == nil || c.Reason != v1alpha1.ReasonNameConflict {
			t.Errorf("nothing says that the name is taken: %+v", c)
		}
		if err := w.Get(t.Context(), types.NamespacedName{Namespace: "team", Name: "profile-goal"}, &batchv1.Job{}); err == nil {
			t.Error("a Job runs by it")
		}
	})
	t.Run("an edited record decides nothing and is restored", func(t *testing.T) {
		w := newWorld(t)
		w.expect("accepted", "Pending", "Profiling")
		input := &corev1.ConfigMap{}
		w.read(input, "dgdr-input-goal")
		was := input.Data[requestplan.KeyConfig]
		input.Data = map[string]string{"spec.json": evil, requestplan.KeyConfig: "evil"}
		if err := w.Update(t.Context(), input); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.read(input, "dgdr-input-goal")
		if input.Data[requestplan.KeyConfig] != was {
			t.Errorf("the profiler is told %q", input.Data[requestplan.KeyConfig])
		}
		w.finish(batchv1.JobComplete, success)
		w.settle()
		w.read(&v1alpha1.DynamoGraphDeployment{}, "goal")
		if inVictim(w) > 0 {
			t.Error("a graph is in victim")
		}
	})
	t.Run("what is written beside the configuration holds nothing up", func(t *testing.T) {
		w := newWorld(t)
		if _, err := w.r.Reconcile(t.Context(), w.request()); err != nil {
			t.Fatal(err)
		}
		input := &corev1.ConfigMap{}
		w.read(input, "dgdr-input-goal")
		input.Data["spec.json"] = evil
		if err := w.Update(t.Context(), input); err != nil {
			t.Fatal(err)
		}
		w.expect("edited", "Pending", "Profiling")
	})
	t.Run("an edited output becomes no graph", func(t *testing.T) {
		w := newWorld(t)
		w.expect("accepted", "Pending", "Profiling")
		w.finish(batchv1.JobComplete, success)
		output := &corev1.ConfigMap{}
		w.read(output, "dgdr-output-goal")
		output.Data[profileoutput.KeyResult] += " "
		if err := w.Update(t.Context(), output); err != nil {
			t.Fatal(err)
		}
		w.expect("edited", "Failed")
		if c := meta.FindStatusCondition(w.request().Status.Conditions, v1alpha1.ConditionSpecGenerated); c == nil || c.Reason != v1alpha1.ReasonOutputNotProven {
			t.Errorf("it says %+v", c)
		}
	})
}

// reviewer lets accounts do what they are listed with.
type reviewer map[string][]string

func (r reviewer) Create(_ context.Context, review client.Object, _ ...client.CreateOption) error {
	sar := review.(*authorizationv1.SubjectAccessReview)
	sar.Status.Allowed = slices.Contains(r[sar.Spec.User], sar.Spec.ResourceAttributes.Verb+" "+sar.Spec.ResourceAttributes.Resource)
	return nil
}

// TestConsentIsAskedForAtTheMoment follows a request into another namespace, whose
// consent comes late, is withdrawn between and comes back.
func TestConsentIsAskedForAtTheMoment(t *testing.T) {
	w := newWorld(t)
	rights := reviewer{"system:serviceaccount:prod:deployer": {"create dynamographdeployments", "patch dynamographdeployments"}}
	w.r.World.Reviews, w.r.World.Policy = rights, "p"
	w.make(&admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{Validations: []admissionregistrationv1.Validation{{Expression: "true"}}},
	})
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "p", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	w.make(binding)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "deployer"}}
	w.make(account)
	r := w.request()
	r.Spec.DeploymentOverrides = &v1alpha1.DeploymentOverrides{Namespace: "prod"}
	if err := w.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	says := func(kind, reason string) {
		t.Helper()
		if c := meta.FindStatusCondition(w.request().Status.Conditions, kind); c == nil || c.Reason != reason {
			t.Errorf("%s says %+v, not %s", kind, c, reason)
		}
	}
	grant := func(from string) {
		t.Helper()
		account.Annotations = map[string]string{v1alpha1.AnnotationAllowRequestsFrom: from}
		if err := w.Update(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	w.expect("without consent", "Pending")
	says(v1alpha1.ConditionValidation, v1alpha1.ReasonNamespaceNotGranted)
	grant("team-b")
	w.settle()
	says(v1alpha1.ConditionValidation, v1alpha1.ReasonNamespaceNotGranted)
	grant("team-b, team")
	w.expect("with consent", "Pending", "Profiling")
	grant("")
	w.finish(batchv1.JobComplete, success)
	w.expect("withdrawn", "Deploying")
	says(v1alpha1.ConditionDeploymentReady, v1alpha1.ReasonNamespaceNotGranted)
	grant("team")
	rights["system:serviceaccount:prod:deployer"] = nil
	w.settle()
	says(v1alpha1.ConditionDeploymentReady, v1alpha1.ReasonGrantInsufficient)
	rights["system:serviceaccount:prod:deployer"] = []string{"create dynamographdeployments", "patch dynamographdeployments"}
	if err := w.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	w.settle()
	says(v1alpha1.ConditionDeploymentReady, v1alpha1.ReasonPolicyNotInForce)
	key := types.NamespacedName{Namespace: "prod", Name: "goal"}
	if err := w.Get(t.Context(), key, &v1alpha1.DynamoGraphDeployment{}); err == nil {
		t.Fatal("the graph was made without consent")
	}
	binding.ResourceVersion = ""
	w.make(binding)
	w.settle()
	if err := w.Get(t.Context(), key, &v1alpha1.DynamoGraphDeployment{}); err != nil {
		t.Errorf("the graph is not made with consent: %v", err)
	}
}

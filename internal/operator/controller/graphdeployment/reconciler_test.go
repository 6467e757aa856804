package graphdeployment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// stage is a cluster without a server, with a graph and the reconciler before it.
type stage struct {
	*testing.T
	client     client.Client
	reconciler *Reconciler
	writes     []string
}

// indexes hands the reconciler's indexes to a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, of client.IndexerFunc) error {
	i.WithIndex(object, field, of)
	return nil
}

// newStage serves the given optional APIs.
func newStage(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment, have ...snapshot.API) *stage {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithReturnManagedFields().
		WithStatusSubresource(&v1alpha1.DynamoGraphDeployment{}).WithObjects(dgd)
	builder.WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if object.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition" {
			return c.Get(ctx, key, object, options...)
		}
		if slices.Contains(have, snapshot.API(key.Name)) {
			return nil
		}
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}})
	children, beneath := Children(), Beneath()
	for _, c := range append(slices.Concat(children, beneath), Claims()) {
		if c.List == nil {
			continue
		}
		if err := observe.Index(t.Context(), indexes{builder}, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := observe.IndexPods(t.Context(), indexes{builder}); err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, client: builder.Build()}
	applier, err := apply.New(s.client, s.client)
	if err != nil {
		t.Fatal(err)
	}
	applier.OnWrite = func(c apply.Change) { s.writes = append(s.writes, c.String()) }
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	recorder := events.NewFakeRecorder(1000)
	devices := &atomic.Bool{}
	devices.Store(slices.Contains(have, snapshot.APIDevices))
	s.reconciler = &Reconciler{
		Client: s.client,
		Observer: Observer{
			Children: observe.New(s.client, children...), Claims: observe.New(s.client, Claims()), Beneath: observe.New(s.client, beneath...),
			Facts: observe.Facts{Cached: s.client, Direct: s.client, Devices: devices}, Pods: observe.NewInspector(s.client, s.client, nil),
		},
		Applier: applier, Events: recorder, Clock: clock,
		Cleanup:  controller.Cleanup{Applier: applier, Events: recorder, Clock: clock, Began: &controller.FirstSeen{}},
		Platform: config.Default().Platform(),
	}
	return s
}

// pass makes one reconcile and returns what it wrote to workloads, and the graph.
func (s *stage) pass() ([]string, *v1alpha1.DynamoGraphDeployment) {
	s.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	key := client.ObjectKey{Namespace: "lab", Name: "chat"}
	if err := s.client.Get(s.Context(), key, dgd); err != nil {
		s.Fatal(err)
	}
	s.writes = nil
	if _, err := s.reconciler.Reconcile(s.Context(), dgd); err != nil {
		s.Fatal(err)
	}
	if err := s.client.Get(s.Context(), key, dgd); err != nil {
		s.Fatal(err)
	}
	var workloads []string
	for _, w := range s.writes {
		if strings.Contains(w, "PodClique") || strings.Contains(w, v1alpha1.KindDynamoComponentDeployment) {
			workloads = append(workloads, w)
		}
	}
	return workloads, dgd
}

func chat() *v1alpha1.DynamoGraphDeployment {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "chat", UID: "chat-uid", Generation: 1}}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"decode": {
		ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(1)),
		ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "engine:1"}},
	}}
	return dgd
}

func TestAGraphIsTakenDownWhereItRunsBeforeItIsMadeElsewhere(t *testing.T) {
	s := newStage(t, chat(), snapshot.APIGrove)
	expect := func(reason string, want ...string) {
		t.Helper()
		got, dgd := s.pass()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != reason {
			t.Errorf("condition %v, want %s", c, reason)
		}
	}
	wish := func(grove string) {
		t.Helper()
		_, dgd := s.pass()
		dgd.Annotations[v1alpha1.AnnotationEnableGrove] = grove
		if err := s.client.Update(t.Context(), dgd); err != nil {
			t.Fatal(err)
		}
	}
	expect(v1alpha1.ReasonServicesNotReady, "Created PodCliqueSet chat")
	expect(v1alpha1.ReasonServicesNotReady)
	if len(s.writes) > 0 {
		t.Errorf("a pass with nothing to do wrote %v", s.writes)
	}
	wish("false")
	expect(v1alpha1.ReasonMigrating, "Deleted PodCliqueSet chat")
	expect(v1alpha1.ReasonServicesNotReady, "Created DynamoComponentDeployment chat-decode")
	wish("true")
	expect(v1alpha1.ReasonMigrating, "Deleted DynamoComponentDeployment chat-decode")
	expect(v1alpha1.ReasonServicesNotReady, "Created PodCliqueSet chat")
	expect(v1alpha1.ReasonServicesNotReady)
	if len(s.writes) > 0 {
		t.Errorf("a pass with nothing to do wrote %v", s.writes)
	}
}

// TestAWriteThatFailsDoesNotHideThatAGraphWasCarriedOut: webhooks that are not up yet
// refuse the first write to a graph that is taken over, and a status of ours would be
// taken for one of a change that is still to be made.
func TestAWriteThatFailsDoesNotHideThatAGraphWasCarriedOut(t *testing.T) {
	dgd := chat()
	dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: 1, State: v1alpha1.GraphStateSuccessful}
	s := newStage(t, dgd)
	child := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "chat-decode-0a1b2c3d", Labels: map[string]string{v1alpha1.LabelGeneration: "0a1b2c3d", v1alpha1.LabelComponent: "decode", v1alpha1.LabelGraphName: "chat"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))},
	}}
	if err := s.client.Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	down := errors.New(`failed calling webhook "dynamographdeployment.nvidia.com"`)
	failing, err := apply.New(interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if o.GetName() == dgd.Name {
				return down
			}
			return c.Patch(ctx, o, p, options...)
		},
	}), s.client)
	if err != nil {
		t.Fatal(err)
	}
	applier := s.reconciler.Applier
	s.reconciler.Applier = failing
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(dgd), dgd); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconciler.Reconcile(t.Context(), dgd); !errors.Is(err, down) {
		t.Errorf("reconcile says %v", err)
	}
	s.reconciler.Applier = applier
	if _, now := s.pass(); now.Annotations[v1alpha1.AnnotationAdoptedGeneration] != "1" {
		t.Errorf("annotations %v", now.Annotations)
	}
}

// TestAClaimThatTwoGraphsAskForGoesWithTheLast: one that is being deleted is kept by the pods
// that use it, and no pod that comes is placed.
func TestAClaimThatTwoGraphsAskForGoesWithTheLast(t *testing.T) {
	models := []v1alpha1.PVC{{Name: "models", Create: new(true), StorageClass: "fast", Size: new(resource.MustParse("1Gi")), VolumeAccessMode: corev1.ReadWriteMany}}
	first, second := chat(), chat()
	second.Name, second.UID = "second", "second-uid"
	first.Spec.PVCs, second.Spec.PVCs = models, models
	s := newStage(t, first)
	s.pass()
	if err := s.client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	// What becomes of the claim when a graph is deleted.
	ends := func(name string) *corev1.PersistentVolumeClaim {
		t.Helper()
		key := client.ObjectKey{Namespace: "lab", Name: name}
		dgd := &v1alpha1.DynamoGraphDeployment{}
		for _, deleted := range []bool{false, true} {
			if err := s.client.Get(t.Context(), key, dgd); err != nil {
				t.Fatal(err)
			}
			if !deleted {
				if _, err := s.reconciler.Reconcile(t.Context(), dgd); err != nil {
					t.Fatal(err)
				}
				if err := s.client.Delete(t.Context(), dgd); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := s.reconciler.Reconcile(t.Context(), dgd); err != nil {
			t.Fatal(err)
		}
		if err := s.client.Get(t.Context(), key, dgd); !apierrors.IsNotFound(err) {
			t.Errorf("graph %s is held by %v: %v", name, dgd.Finalizers, err)
		}
		claim := &corev1.PersistentVolumeClaim{}
		if err := client.IgnoreNotFound(s.client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "models"}, claim)); err != nil {
			t.Fatal(err)
		}
		return claim
	}
	if claim := ends("chat"); claim.DeletionTimestamp != nil || !graph.CreatedFor(claim, second) {
		t.Errorf("claim %q is labelled %v", claim.Name, claim.Labels)
	}
	if claim := ends("second"); claim.Name != "" {
		t.Errorf("the claim is left, labelled %v", claim.Labels)
	}
}

// TestGraphsThatFindEachOthersWorkersAreWarnedOf at either of them, once.
func TestGraphsThatFindEachOthersWorkersAreWarnedOf(t *testing.T) {
	serving := func(name string) *v1alpha1.DynamoGraphDeployment {
		dgd := chat()
		dgd.Name, dgd.UID = name, types.UID(name)
		dgd.Annotations = map[string]string{v1alpha1.AnnotationRuntimeContract: string(graph.ContractV1)}
		dgd.Spec.Services["Frontend"] = &v1alpha1.SharedSpec{
			ComponentType: v1alpha1.ComponentTypeFrontend, Replicas: new(int32(1)),
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "engine:1"}},
		}
		return dgd
	}
	leaving, paired := serving("chat-old"), serving("cha")
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"example.com/slow"}, new(metav1.NewTime(time.Unix(500, 0)))
	paired.Annotations[v1alpha1.AnnotationRolloutIsolation] = v1alpha1.IsolationPaired
	for rule, c := range map[string]struct {
		others []*v1alpha1.DynamoGraphDeployment
		want   string
	}{
		"a longer name":                 {[]*v1alpha1.DynamoGraphDeployment{serving("chat-large"), serving("chat-small"), leaving, serving("other")}, "metadata.name: frontends look for workers in Dynamo namespaces that begin with lab-chat, and so find those of graph chat-large, chat-small too; give one of the graphs a name that the other's does not begin with"},
		"a shorter name":                {[]*v1alpha1.DynamoGraphDeployment{serving("ch")}, "metadata.name: frontends of graph ch look for workers in Dynamo namespaces that begin with lab-ch, and so find those of this graph too; give one of the graphs a name that the other's does not begin with"},
		"frontends that are kept apart": {[]*v1alpha1.DynamoGraphDeployment{paired}, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newStage(t, serving("chat"))
			s.reconciler.Platform.Generations = true
			for _, other := range c.others {
				if err := s.client.Create(t.Context(), other.DeepCopy()); err != nil {
					t.Fatal(err)
				}
				if other.DeletionTimestamp != nil {
					if err := s.client.Delete(t.Context(), other.DeepCopy()); err != nil {
						t.Fatal(err)
					}
				}
			}
			var told []string
			for range 3 {
				s.pass()
			}
			for recorder := s.reconciler.Events.(*events.FakeRecorder); len(recorder.Events) > 0; {
				if _, warning, found := strings.Cut(<-recorder.Events, "SpecWarning "); found {
					told = append(told, warning)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(told, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAComponentOfSomebodysThatNamesTheGraphIsNoneOfItsOwn: it is not waited for where the
// graph runs elsewhere, and it stays.
func TestAComponentOfSomebodysThatNamesTheGraphIsNoneOfItsOwn(t *testing.T) {
	s := newStage(t, chat(), snapshot.APIGrove)
	own := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "own", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindDynamoGraphDeployment, Name: "chat", UID: "chat-uid",
	}}}}
	if err := s.client.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	got, dgd := s.pass()
	if diff := cmp.Diff([]string{"Created PodCliqueSet chat"}, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonServicesNotReady {
		t.Errorf("condition %v", c)
	}
	if got, _ := s.pass(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// sharing is a graph whose engines share the memory of GPUs.
func sharing(gpus string) *v1alpha1.DynamoGraphDeployment {
	dgd := chat()
	decode := dgd.Spec.Services["decode"]
	decode.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: gpus}}
	decode.GPUMemoryService = &v1alpha1.GPUMemoryService{Enabled: true}
	return dgd
}

func TestATemplateOfClaimsComesAndGoesWithTheMemoryThatIsShared(t *testing.T) {
	s := newStage(t, sharing("1"), snapshot.APIDevices)
	expect := func(want ...string) {
		t.Helper()
		s.pass()
		got := slices.DeleteFunc(slices.Clone(s.writes), func(w string) bool { return !strings.Contains(w, "ResourceClaimTemplate") })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	}
	wish := func(change func(*v1alpha1.SharedSpec)) {
		t.Helper()
		_, dgd := s.pass()
		change(dgd.Spec.Services["decode"])
		if err := s.client.Update(t.Context(), dgd); err != nil {
			t.Fatal(err)
		}
	}
	expect("Created ResourceClaimTemplate chat-decode-gpu")
	template := &resourcev1.ResourceClaimTemplate{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "chat-decode-gpu"}, template); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(template); owner == nil || owner.UID != "chat-uid" {
		t.Errorf("owner %v", owner)
	}
	expect()
	wish(func(decode *v1alpha1.SharedSpec) { decode.Resources.Limits.GPU = "2" })
	expect("Replaced ResourceClaimTemplate chat-decode-gpu")
	expect()
	wish(func(decode *v1alpha1.SharedSpec) { decode.GPUMemoryService = nil })
	expect("Deleted ResourceClaimTemplate chat-decode-gpu")
	expect()
}

func TestAGraphSaysThatPodsCannotClaimDevicesHere(t *testing.T) {
	s := newStage(t, sharing("1"))
	_, dgd := s.pass()
	ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonOrchestratorUnavailable || !strings.Contains(ready.Message, "Kubernetes 1.34") {
		t.Errorf("condition %v", ready)
	}
	if slices.ContainsFunc(s.writes, func(w string) bool { return strings.Contains(w, "ResourceClaimTemplate") }) {
		t.Errorf("writes %v", s.writes)
	}
}

// claiming is a graph whose engine spans nodes and has the GPUs that it claims.
func claiming() *v1alpha1.DynamoGraphDeployment {
	dgd := chat()
	dgd.Annotations = map[string]string{v1alpha1.AnnotationOriginVersion: "1.4.1"}
	decode := dgd.Spec.Services["decode"]
	decode.Multinode = &v1alpha1.Multinode{NodeCount: 2}
	decode.Resources = &v1alpha1.Resources{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}
	decode.ExtraPodSpec.PodSpec = &corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: new("two")}}}
	decode.ExtraPodSpec.MainContainer.Command = strings.Fields("python3 -m dynamo.vllm")
	decode.ExtraPodSpec.MainContainer.Args = strings.Fields("--model m --tensor-parallel-size 4")
	return dgd
}

// TestAGroupIsLaunchedByTheGPUsThatItClaims: under Grove the graph waits for the
// template, elsewhere it makes the component, which does.
func TestAGroupIsLaunchedByTheGPUsThatItClaims(t *testing.T) {
	for rule, c := range map[string]struct {
		have          []snapshot.API
		before, after []string
	}{
		"by Grove":      {[]snapshot.API{snapshot.APIDevices, snapshot.APIGrove}, nil, []string{"Created PodCliqueSet chat"}},
		"by components": {[]snapshot.API{snapshot.APIDevices}, []string{"Created DynamoComponentDeployment chat-decode"}, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newStage(t, claiming(), c.have...)
			got, dgd := s.pass()
			if diff := cmp.Diff(c.before, got); diff != "" {
				t.Errorf("writes before (-want +got):\n%s", diff)
			}
			ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != v1alpha1.ReasonDeviceClaimNotFound || !strings.Contains(ready.Message, "ResourceClaimTemplate two") {
				t.Errorf("condition %v", ready)
			}
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "two"}}
			template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 2}}}
			if err := s.client.Create(t.Context(), template); err != nil {
				t.Fatal(err)
			}
			got, dgd = s.pass()
			if diff := cmp.Diff(c.after, got); diff != "" {
				t.Errorf("writes after (-want +got):\n%s", diff)
			}
			if ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != v1alpha1.ReasonServicesNotReady {
				t.Errorf("condition %v", ready)
			}
			set := &grovev1alpha1.PodCliqueSet{}
			if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "chat"}, set); err == nil {
				args := strings.Join(set.Spec.Template.Cliques[0].Spec.PodSpec.Containers[0].Args, " ")
				if !strings.Contains(args, "--distributed-executor-backend mp --nnodes 2") {
					t.Errorf("args %s", args)
				}
			}
		})
	}
}

func TestTidings(t *testing.T) {
	ready := func(is metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: is}}
	}
	component := func(generation, told int64) *v1alpha1.DynamoComponentDeployment {
		return &v1alpha1.DynamoComponentDeployment{
			ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Status:     v1alpha1.DynamoComponentDeploymentStatus{ObservedGeneration: told},
		}
	}
	for rule, c := range map[string]struct {
		told     int64
		was, now metav1.ConditionStatus
		seen     observation
		err      error
		want     controller.Urgency
	}{
		"a graph that fails though nobody changed it is an alarm": {1, "True", "False", observation{}, nil, controller.Urgent},
		"one that was changed is on its way":                      {0, "True", "False", observation{Snapshot: snapshot.Snapshot{Owned: []graph.Object{component(2, 1)}}}, nil, controller.InProgress},
		"one that was never ready has nothing to lose":            {1, "False", "False", observation{}, nil, controller.Settled},
		"an error is told at once":                                {1, "True", "True", observation{}, apierrors.NewTimeoutError("slow", 1), controller.Urgent},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			dgd.Status.ObservedGeneration, dgd.Status.Conditions = c.told, ready(c.was)
			if got := c.seen.urgency(dgd, v1alpha1.DynamoGraphDeploymentStatus{Conditions: ready(c.now)}, c.err); got != c.want {
				t.Errorf("urgency = %v, want %v", got, c.want)
			}
		})
	}
}

package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

// TestAnOutlineIsSmallWhateverATenantWrites: every field that a tenant can make
// large is.
func TestAnOutlineIsSmallWhateverATenantWrites(t *testing.T) {
	large := strings.Repeat("x", 1<<18)
	c := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "c", UID: "u", ResourceVersion: "7", Finalizers: []string{large},
			Labels:        map[string]string{v1alpha1.LabelGraphName: "g", large: "x"},
			Annotations:   map[string]string{"mine": large, v1alpha1.AnnotationProfilingAttempt: "3", "x": large},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:` + large + `":{}}`)}},
		},
	}
	for i := range 1000 {
		c.OwnerReferences = append(c.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: types.UID(fmt.Sprint(i))})
	}
	c.OwnerReferences = append(c.OwnerReferences,
		metav1.OwnerReference{APIVersion: "v1", Kind: large, Name: "p", UID: "long"},
		metav1.OwnerReference{APIVersion: "nvidia.com/v1alpha1", Kind: v1alpha1.KindDynamoGraphDeployment, Name: "g", UID: "graph"})
	once, err := TrimConfigMap(c)
	if err != nil {
		t.Fatal(err)
	}
	trimmed := once.(*metav1.PartialObjectMetadata)
	if size := trimmed.Size(); size > 4<<10 {
		t.Errorf("%d bytes are held", size)
	}
	if len(trimmed.OwnerReferences) != mostOwners || trimmed.OwnerReferences[0].UID != "graph" {
		t.Errorf("%d owners, the first is %v", len(trimmed.OwnerReferences), trimmed.OwnerReferences[0])
	}
	if trimmed.Kind != "ConfigMap" || trimmed.ResourceVersion != "7" || trimmed.UID != "u" || trimmed.Labels[v1alpha1.LabelGraphName] != "g" || trimmed.Annotations[v1alpha1.AnnotationProfilingAttempt] != "3" {
		t.Errorf("what is used is lost: %v", trimmed.ObjectMeta)
	}
	twice, err := TrimConfigMap(trimmed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("an informer transforms twice (-once +twice):\n%s", diff)
	}
}

// TestATemplateOfATenantIsHeldByWhatItAsksFor, and not by how that is chosen, which
// can be large.
func TestATemplateOfATenantIsHeldByWhatItAsksFor(t *testing.T) {
	large := strings.Repeat("x", 1<<18)
	chosen := []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: large}}}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "two", UID: "u", ResourceVersion: "7", Annotations: map[string]string{"mine": large}}}
	template.Spec.Annotations = map[string]string{"claims": large}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{
		{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Selectors: chosen, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
		{Name: "b", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "c", DeviceClassName: "gpu.amd.com", Selectors: chosen, Count: 1}}},
	}
	want := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "two", UID: "u", ResourceVersion: "7"}}
	want.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{
		{Name: "a", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}},
		{Name: "b", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "c", DeviceClassName: "gpu.amd.com", Count: 1}}},
	}
	got, err := TrimDeviceTemplate(template)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	template.OwnerReferences = []metav1.OwnerReference{{APIVersion: "nvidia.com/v1alpha1", Kind: v1alpha1.KindDynamoGraphDeployment, Name: "g", UID: "graph"}}
	whole, err := TrimDeviceTemplate(template)
	if err != nil {
		t.Fatal(err)
	}
	if held := whole.(*resourcev1.ResourceClaimTemplate); len(held.Spec.Spec.Devices.Requests[0].Exactly.Selectors) == 0 {
		t.Error("of one of ours something is left out, and an apply could not be decided")
	}
}

func TestOnlyObjectsThatConcernUsAreHeldWhole(t *testing.T) {
	const hash = v1alpha1.AnnotationLastAppliedHash
	for rule, c := range map[string]struct {
		meta  metav1.ObjectMeta
		whole bool
	}{
		"somebody else's":           {meta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}},
		"a child of ours":           {meta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "nvidia.com/v1alpha1", Kind: "DynamoGraphDeployment"}}}, whole: true},
		"a child of another":        {meta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment"}}}},
		"written by us":             {meta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply}}}, whole: true},
		"of an earlier operator":    {meta: metav1.ObjectMeta{Annotations: map[string]string{hash: "x"}}, whole: true},
		"of the whole namespace":    {meta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}}, whole: true},
		"an account of the planner": {meta: metav1.ObjectMeta{Labels: map[string]string{"app.kubernetes.io/managed-by": FieldManager}}, whole: true},
	} {
		t.Run(rule, func(t *testing.T) {
			c.meta.Name = "s"
			got, err := TrimForeign(&corev1.Service{ObjectMeta: c.meta, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}})
			if err != nil {
				t.Fatal(err)
			}
			if whole := got.(*corev1.Service).Spec.ClusterIP != ""; whole != c.whole || got.(*corev1.Service).Name != "s" {
				t.Errorf("held whole: %v", whole)
			}
		})
	}
}

// outlines is a cache that holds ConfigMaps without their data.
type outlines struct{ client.Client }

func (o outlines) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := o.Client.Get(ctx, key, into, options...); err != nil {
		return err
	}
	if c, ok := into.(*corev1.ConfigMap); ok {
		*c = corev1.ConfigMap{ObjectMeta: outline(c)}
	}
	return nil
}

// reads counts what the server is asked.
type reads struct {
	client.Reader
	n int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	switch into.(type) {
	case *corev1.ConfigMap, *unstructured.Unstructured:
		r.n++
	}
	return r.Reader.Get(ctx, key, into, options...)
}

// TestWhatTheCacheHoldsInOutlineIsReadWhenItChanged: once for what is there when
// the operator starts, and whenever somebody changed it, but not in every reconcile.
func TestWhatTheCacheHoldsInOutlineIsReadWhenItChanged(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	config := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta("m"), Data: map[string]string{"k": "wanted"}}
	}
	server := &reads{Reader: s.client}
	begin := func() {
		var err error
		if s.applier, err = New(outlines{s.client}, server, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		s.applier.OnWrite = func(c Change) { s.writes = append(s.writes, c.String()) }
	}
	asked := func(want int) {
		t.Helper()
		if server.n != want {
			t.Errorf("the server was asked %d times, want %d", server.n, want)
		}
		server.n = 0
	}
	begin()
	s.must("Created ConfigMap m", config())
	asked(1)
	s.must("", config())
	asked(0)
	begin() // an operator that knows nothing of its writes
	s.must("", config())
	asked(1)
	s.must("", config())
	asked(0)
	live := config()
	live.Data["k"] = "by hand"
	if err := s.client.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"data":{"k":"by hand"}}`))); err != nil {
		t.Fatal(err)
	}
	s.must("Updated ConfigMap m", config())
	asked(1)
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil || live.Data["k"] != "wanted" {
		t.Errorf("data %v, %v", live.Data, err)
	}
}

// TestWhyACandidateWasAbortedIsHeld: the longest record that is written is kept in the
// cache, from which its reason is told; a longer one somebody else has written.
func TestWhyACandidateWasAbortedIsHeld(t *testing.T) {
	many := revision.Record{Reason: "CandidateCrashed", Message: strings.Repeat("generation crashed, last in pod <x>; ", 200), Lowest: map[string]int32{}}
	for i := range 500 {
		many.Lowest[fmt.Sprintf("service-%d", i)] = 1
	}
	for rule, record := range map[string]revision.Record{
		"a usual one": {Reason: "CandidateCrashed", Message: strings.Repeat("m", 300), Lowest: map[string]int32{"decode": 1}},
		"a long one":  many,
	} {
		of, err := revision.WithResult(&appsv1.ControllerRevision{}, revision.Aborted, record)
		if err != nil {
			t.Fatal(err)
		}
		held, err := TrimRevision(of)
		if err != nil {
			t.Fatal(err)
		}
		got := revision.RecordOf(held.(*appsv1.ControllerRevision))
		if got.Reason != record.Reason || !strings.HasPrefix(record.Message, got.Message) || len(got.Message) < 300 {
			t.Errorf("%s: %+v", rule, got)
		}
	}
	forged := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationRolloutRecord: strings.Repeat("x", revision.LongestRecord+1)}}}
	if held, err := TrimRevision(forged); err != nil || len(held.(*appsv1.ControllerRevision).Annotations) > 0 {
		t.Errorf("a forged one is held: %v", err)
	}
}

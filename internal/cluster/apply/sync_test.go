package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

const namespace = "n"

// stage is a cluster without a server, the applier before it, and what the
// applier was seen to write.
type stage struct {
	*testing.T
	client  client.Client
	applier *Applier
	owner   *v1alpha1.DynamoComponentDeployment
	writes  []string
}

func newStage(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *stage {
	t.Helper()
	owner := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c", UID: "c-uid"}}
	s := &stage{T: t, owner: owner}
	s.client = fake.NewClientBuilder().WithScheme(scheme.New()).WithReturnManagedFields().
		WithObjects(append(objects, owner.DeepCopy())...).WithInterceptorFuncs(funcs).Build()
	var err error
	if s.applier, err = New(s.client, s.client); err != nil {
		t.Fatal(err)
	}
	s.applier.OnWrite = func(c Change) { s.writes = append(s.writes, c.String()) }
	return s
}

func (s *stage) sync(wanted ...graph.Object) error {
	s.Helper()
	s.writes = nil
	var all []graph.Desired
	for _, o := range wanted {
		all = append(all, graph.Desired{Object: o})
	}
	_, err := s.applier.Apply(s.Context(), s.owner, Plan{Children: all})
	return err
}

func (s *stage) must(want string, objects ...graph.Object) {
	s.Helper()
	if err := s.sync(objects...); err != nil {
		s.Fatal(err)
	}
	if got := strings.Join(s.writes, ", "); got != want {
		s.Errorf("wrote %q, want %q", got, want)
	}
}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func deployment(selector string) *appsv1.Deployment {
	labels := map[string]string{"app": selector}
	d := &appsv1.Deployment{ObjectMeta: meta("d")}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "i"}}
	return d
}

func binding(role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: meta("b"), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: role}}
}

func service(ip string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta("s"), Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 1}}}}
}

func group(nodes int32) *lwsv1.LeaderWorkerSet {
	g := &lwsv1.LeaderWorkerSet{ObjectMeta: meta("g")}
	g.Spec.LeaderWorkerTemplate.Size = &nodes
	return g
}

func TestAChangeThatAnObjectCannotTakeMakesItAgain(t *testing.T) {
	for rule, c := range map[string]struct {
		before, after graph.Object
		atOnce        bool // nothing hangs on it
	}{
		"Deployment":      {deployment("a"), deployment("b"), false},
		"LeaderWorkerSet": {group(2), group(3), false},
		"RoleBinding":     {binding("a"), binding("b"), true},
		"Service":         {service("10.0.0.1"), service("None"), true},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{})
			name := rule + " " + c.before.GetName()
			s.must("Created "+name, c.before)
			s.must("", c.before)
			s.must("Replaced "+name, c.after)
			if !c.atOnce {
				s.must("Created "+name, c.after)
			}
			s.must("", c.after)
		})
	}
}

func TestAnObjectIsMadeAgainOnlyWhenTheOldOneIsGone(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	s.must("Created LeaderWorkerSet g", group(2))
	live := group(2)
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Finalizers = []string{"foregroundDeletion"}
	if err := s.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	s.must("Replaced LeaderWorkerSet g", group(3))
	if f, known := fault.From(s.sync(group(3))); !known || f.Class != fault.Waiting || f.Reason != v1alpha1.ReasonChildTerminating {
		t.Errorf("fault %+v", f)
	}
	if len(s.writes) > 0 {
		t.Errorf("wrote %v while the old one is there", s.writes)
	}
}

func TestAnAnswerThatAFieldIsImmutableMakesTheObjectAgain(t *testing.T) {
	calls := 0
	s := newStage(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		calls++
		if calls == 2 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "s", field.ErrorList{field.Invalid(field.NewPath("spec", "x"), "v", "field is immutable")})
		}
		return c.Apply(ctx, o, options...)
	}})
	s.must("Created Service s", service(""))
	changed := service("")
	changed.Spec.Ports[0].Port = 2
	s.must("Replaced Service s", changed)
	s.must("", changed)
}

// TestARefusalDeletesNothing unless it is the kind itself that cannot take the change: what
// a policy forbids today stays as it is, and runs.
func TestARefusalDeletesNothing(t *testing.T) {
	named := func(name string, o graph.Object) graph.Object { o.SetName(name); return o }
	scaled := func(g *lwsv1.LeaderWorkerSet) graph.Object { g.Spec.Replicas = new(int32(2)); return g }
	relabelled := func(o graph.Object) graph.Object { o.SetLabels(map[string]string{"a": "b"}); return o }
	denial := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: map[int32]metav1.StatusReason{422: metav1.StatusReasonInvalid, 403: metav1.StatusReasonForbidden}[code], Message: message}}
	}
	policy := denial(422, `deployments.apps "d" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: images cannot be changed on Fridays`)
	for rule, c := range map[string]struct {
		before, after graph.Object
		err           error
		want          string
	}{
		"an admission policy":            {deployment("a"), relabelled(deployment("a")), policy, ""},
		"an admission policy of groups":  {group(2), scaled(group(2)), policy, ""},
		"a webhook over the server's":    {deployment("a"), relabelled(deployment("a")), denial(403, `admission webhook "freeze.example.com" denied the request: updates to production are frozen`), ""},
		"a quota, and the name has it":   {named("immutable", service("")), named("immutable", relabelled(service(""))), denial(403, `services "immutable" is forbidden: exceeded quota: q`), ""},
		"a webhook that knows the kind":  {group(2), scaled(group(2)), denial(403, `admission webhook "vleaderworkerset.kb.io" denied the request: spec.x: Invalid value: 2: field is immutable`), "Replaced LeaderWorkerSet g"},
		"the server itself, for a field": {deployment("a"), relabelled(deployment("a")), apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "d", field.ErrorList{field.Invalid(field.NewPath("spec", "x"), "v", "field is immutable")}), "Replaced Deployment d"},
	} {
		t.Run(rule, func(t *testing.T) {
			refuse := false
			s := newStage(t, interceptor.Funcs{Apply: func(ctx context.Context, cluster client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if refuse {
					return c.err
				}
				return cluster.Apply(ctx, o, options...)
			}})
			if err := s.sync(c.before); err != nil {
				t.Fatal(err)
			}
			refuse = true
			err := s.sync(c.after)
			if got := strings.Join(s.writes, ", "); got != c.want {
				t.Errorf("wrote %q, want %q", got, c.want)
			}
			if retried := fault.Retry(err); retried != (c.want == "") {
				t.Errorf("retried %v: %v", retried, err)
			}
		})
	}
}

func TestAnObjectThatTheServerRefusesIsNotSentAgainAndAgain(t *testing.T) {
	s := newStage(t, interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "s", field.ErrorList{field.Invalid(field.NewPath("spec", "ports"), "a dump", "must be lower")})
	}})
	err := s.sync(service(""))
	f, known := fault.From(err)
	if !known || f.Class != fault.Invalid || f.Reason != v1alpha1.ReasonRejected || fault.Retry(err) {
		t.Errorf("fault %+v", f)
	}
	if want := "the API server refuses it: spec.ports: must be lower"; f.Message != want {
		t.Errorf("message %q, want %q", f.Message, want)
	}
}

func TestOneObjectsErrorDoesNotStopTheOthers(t *testing.T) {
	calls := 0
	s := newStage(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		calls++
		if calls == 1 {
			return errors.New("timeout")
		}
		return c.Apply(ctx, o, options...)
	}})
	if err := s.sync(service(""), binding("a")); !fault.Retry(err) {
		t.Errorf("error %v is not retried", err)
	}
	if diff := cmp.Diff([]string{"Created RoleBinding b"}, s.writes); diff != "" {
		t.Error(diff)
	}
}

func claimOf(size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta("p"), Spec: corev1.PersistentVolumeClaimSpec{
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}}
}

func TestAClaimMayGrowAndIsNeverMadeAgain(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	once := func(size string) error {
		_, err := s.applier.Apply(t.Context(), s.owner, Plan{Children: []graph.Desired{{Object: claimOf(size), CreateOnly: true, Ownership: graph.OwnershipByUID}}})
		return err
	}
	if err := once("10Gi"); err != nil {
		t.Fatal(err)
	}
	s.writes = nil
	f, known := fault.From(once("5Gi"))
	if !known || f.Class != fault.Invalid || f.Reason != v1alpha1.ReasonImmutableField {
		t.Errorf("fault %+v", f)
	}
	if err := once("10Gi"); err != nil {
		t.Errorf("the old value put back: %v", err)
	}
	if len(s.writes) > 0 {
		t.Errorf("wrote %v", s.writes)
	}
	for range 2 {
		if err := once("20Gi"); err != nil {
			t.Errorf("more: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"Updated PersistentVolumeClaim p"}, s.writes); diff != "" {
		t.Errorf("a claim that may grow: %s", diff)
	}
}

func TestNothingIsMadeOnceDeletionBegan(t *testing.T) {
	for rule, change := range map[string]func(*v1alpha1.DynamoComponentDeployment){
		"the owner is gone":               func(o *v1alpha1.DynamoComponentDeployment) { o.Name = "other" },
		"another owner has the same name": func(o *v1alpha1.DynamoComponentDeployment) { o.UID = "another" },
		"the owner is being deleted": func(o *v1alpha1.DynamoComponentDeployment) {
			o.Finalizers, o.DeletionTimestamp = []string{"foregroundDeletion"}, new(metav1.Now())
		},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{})
			really := s.owner.DeepCopy()
			change(really)
			s.client = fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(really).Build()
			s.applier, _ = New(s.client, s.client)
			s.applier.OnWrite = func(c Change) { s.writes = append(s.writes, c.String()) }
			if err := s.sync(service(""), binding("a")); !OwnerDeleted(err) || fault.Retry(err) {
				t.Errorf("error %v", err)
			}
			if len(s.writes) > 0 {
				t.Errorf("wrote %v", s.writes)
			}
		})
	}
}

func TestAnObjectOfSomebodyElseIsLeftAlone(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, service("10.0.0.9"))
	err := s.sync(service(""), binding("a"))
	if f, known := fault.From(err); !known || f.Reason != v1alpha1.ReasonNameConflict {
		t.Errorf("fault %+v", f)
	}
	if diff := cmp.Diff([]string{"Created RoleBinding b"}, s.writes); diff != "" {
		t.Error(diff)
	}
}

// Whoever wants an object of theirs to go with a graph has it name the graph as an owner.
func TestOnlyWhatIsOursIsRemoved(t *testing.T) {
	kind := v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment)
	owner := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c-uid"}}
	other := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other-uid"}}
	plain := func(of *v1alpha1.DynamoComponentDeployment) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: of.Name, UID: of.UID}
	}
	made := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	for rule, c := range map[string]struct {
		owners []metav1.OwnerReference
		labels map[string]string
		want   []string
	}{
		"what the owner controls is":                       {owners: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}, want: []string{"Deleted Service s"}},
		"what it shared with others that are gone is":      {owners: []metav1.OwnerReference{plain(owner)}, labels: made, want: []string{"Deleted Service s"}},
		"what somebody made to go with it stays":           {owners: []metav1.OwnerReference{plain(owner)}},
		"what somebody made to go with several stays, too": {owners: []metav1.OwnerReference{plain(owner), plain(other)}},
		"what another controls stays":                      {owners: []metav1.OwnerReference{*metav1.NewControllerRef(other, kind), plain(owner)}},
	} {
		t.Run(rule, func(t *testing.T) {
			object := service("")
			object.OwnerReferences, object.Labels = c.owners, c.labels
			s := newStage(t, interceptor.Funcs{}, object)
			changes, err := s.applier.Apply(t.Context(), s.owner, Plan{Owned: []graph.Object{object}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if len(changes) != len(c.want) {
				t.Errorf("changes %v", changes)
			}
		})
	}
}

func TestObjectsInTurnTakeAChangeOneAfterTheOther(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	pass := func(port int32, turns ...graph.UpdatePolicy) string {
		s.writes = nil
		var all []graph.Desired
		for i, turn := range turns {
			one := service("")
			one.Name, one.Spec.Ports[0].Port = []string{"s0", "s1", "s2"}[i], port
			all = append(all, graph.Desired{Object: one, UpdatePolicy: turn})
		}
		if _, err := s.applier.Apply(t.Context(), s.owner, Plan{Children: all}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(s.writes, ", ")
	}
	for _, step := range []struct {
		port  int32
		turns []graph.UpdatePolicy
		want  string
	}{
		{1, []graph.UpdatePolicy{graph.UpdateOneAtATime, graph.UpdateOneAtATime, graph.UpdateNever}, "Created Service s0, Created Service s1, Created Service s2"},
		{2, []graph.UpdatePolicy{graph.UpdateOneAtATime, graph.UpdateOneAtATime, graph.UpdateOneAtATime}, "Updated Service s0"},
		{2, []graph.UpdatePolicy{graph.UpdateNow, graph.UpdateNever, graph.UpdateNever}, ""},
		{2, []graph.UpdatePolicy{graph.UpdateOneAtATime, graph.UpdateOneAtATime, graph.UpdateOneAtATime}, "Updated Service s1"},
		{2, []graph.UpdatePolicy{graph.UpdateOneAtATime, graph.UpdateOneAtATime, graph.UpdateOneAtATime}, "Updated Service s2"},
		{2, []graph.UpdatePolicy{graph.UpdateOneAtATime, graph.UpdateOneAtATime, graph.UpdateOneAtATime}, ""},
		{3, []graph.UpdatePolicy{graph.UpdateNow, graph.UpdateNow, graph.UpdateNever}, "Updated Service s0, Updated Service s1"},
	} {
		if got := pass(step.port, step.turns...); got != step.want {
			t.Errorf("port %d, turns %v: wrote %q, want %q", step.port, step.turns, got, step.want)
		}
	}
}

func TestWhatIsToChangeLaterIsTold(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	named := func(name string, port int32) *corev1.Service {
		one := service("")
		one.Name, one.Spec.Ports[0].Port = name, port
		return one
	}
	sync := func(wanted ...graph.Desired) ChangeSet {
		t.Helper()
		changes, err := s.applier.Apply(t.Context(), s.owner, Plan{Children: wanted})
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	sync(graph.Desired{Object: named("s0", 1)}, graph.Desired{Object: named("s1", 1)}, graph.Desired{Object: named("s2", 1)})
	s.writes = nil
	got := sync(graph.Desired{Object: named("s0", 2)}, graph.Desired{Object: named("s1", 2), UpdatePolicy: graph.UpdateNever}, graph.Desired{Object: named("s2", 1), UpdatePolicy: graph.UpdateNever})
	if diff := cmp.Diff([]graph.Ref{{Kind: "Service", Name: "s0"}}, got.Written()); diff != "" {
		t.Error("written", diff)
	}
	if diff := cmp.Diff([]graph.Ref{{Kind: "Service", Name: "s1"}}, got.Postponed()); diff != "" {
		t.Error("postponed", diff)
	}
	if diff := cmp.Diff([]string{"Updated Service s0"}, s.writes); diff != "" {
		t.Error("witnessed", diff)
	}
}

func TestAWriteThatIsNotSeenYetIsAwaited(t *testing.T) {
	behind := false
	var old *corev1.Service
	s := newStage(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if live, ok := o.(*corev1.Service); ok && behind {
			old.DeepCopyInto(live)
			return nil
		}
		return c.Get(ctx, key, o, options...)
	}})
	s.must("Created Service s", service(""))
	old = service("")
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
		t.Fatal(err)
	}
	changed := service("")
	changed.Spec.Ports[0].Port = 2
	s.must("Updated Service s", changed)
	for _, behind = range []bool{true, false} {
		changes, err := s.applier.Apply(t.Context(), s.owner, Plan{Children: []graph.Desired{{Object: changed}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(changes.Written()) == 1; got != behind {
			t.Errorf("behind %v: %v", behind, changes)
		}
	}
}

func TestAnObjectOfAnEarlierOwnerOfTheSameNameIsWaitedFor(t *testing.T) {
	left := deployment("a")
	earlier := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c", UID: "earlier"}}
	left.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(earlier, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))}
	s := newStage(t, interceptor.Funcs{}, left)
	err := s.sync(deployment("a"))
	if f, known := fault.From(err); !known || f.Class != fault.Waiting || f.Reason != v1alpha1.ReasonChildTerminating {
		t.Errorf("fault %+v", f)
	}
	if err := s.client.Delete(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	s.must("Created Deployment d", deployment("a"))

	// A reconcile over an object that is itself the earlier one says nothing.
	s.owner.UID = "earlier"
	if err := s.sync(deployment("b")); !OwnerDeleted(err) {
		t.Errorf("error %v", err)
	}
}

// What an earlier operator wrote, it wrote whole and under the name of its
// binary, with its hash on it.
func TestFieldsOfAnEarlierOperatorBecomeOurs(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	old := deployment("a")
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.owner, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))}
	old.Annotations = map[string]string{v1alpha1.AnnotationLastAppliedHash: "1", v1alpha1.AnnotationLastAppliedGeneration: "1"}
	old.Labels = map[string]string{"stale": "yes"}
	old.Finalizers = []string{"somebody.else/promise"}
	if err := s.client.Create(t.Context(), old, client.FieldOwner(predecessor)); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Patch(t.Context(), old.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"theirs":"kept"}}}`)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	wanted := deployment("a")
	s.must("Adopted Deployment d", wanted)
	live := &appsv1.Deployment{}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(wanted), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "kept"}, live.Labels); diff != "" {
		t.Errorf("labels: %s", diff)
	}
	if len(live.Annotations) > 0 || len(live.Finalizers) != 1 || live.UID != old.UID {
		t.Errorf("annotations %v, finalizers %v", live.Annotations, live.Finalizers)
	}
	for _, e := range live.ManagedFields {
		if e.Manager == predecessor {
			t.Errorf("manager %s still has fields", predecessor)
		}
	}
	s.must("", wanted)
}

// leftBehind is a Deployment as an earlier operator leaves it, of which ours would be
// another.
func (s *stage) leftBehind() *appsv1.Deployment {
	s.Helper()
	old := deployment("a")
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.owner, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))}
	old.Annotations = map[string]string{v1alpha1.AnnotationLastAppliedHash: "1"}
	old.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "THEIRS", Value: "1"}}
	if err := s.client.Create(s.Context(), old, client.FieldOwner(predecessor)); err != nil {
		s.Fatal(err)
	}
	return old
}

// TestWhatCannotBeSaidNowReplacesNoPods: a server that fails while an adoption is rehearsed
// has not refused the templates that are kept.
func TestWhatCannotBeSaidNowReplacesNoPods(t *testing.T) {
	failures := 2
	s := newStage(t, interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
		var said client.ApplyOptions
		said.ApplyOptions(options)
		if len(said.DryRun) > 0 && failures > 0 {
			failures--
			return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		}
		return c.Apply(ctx, o, options...)
	}})
	old := s.leftBehind()
	kept := graph.Desired{Object: deployment("a"), RetainTemplates: true}
	if _, err := s.applier.Apply(t.Context(), s.owner, Plan{Children: []graph.Desired{kept}}); !apierrors.IsInternalError(err) {
		t.Errorf("the first run says %v", err)
	}
	for range 2 {
		if _, err := s.applier.Apply(t.Context(), s.owner, Plan{Children: []graph.Desired{kept}}); err != nil {
			t.Fatal(err)
		}
	}
	live := &appsv1.Deployment{}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(old), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(old.Spec.Template, live.Spec.Template); diff != "" {
		t.Errorf("template (-theirs +now):\n%s", diff)
	}
}

// TestAComponentIsAdoptedOnlyWhileItCanBeConverted: API servers before 1.37 drop the record
// of who wrote what where they cannot convert to a version that it names, and then nobody
// can tell any more what is to go.
func TestAComponentIsAdoptedOnlyWhileItCanBeConverted(t *testing.T) {
	converts := false
	s := newStage(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		if err := c.Patch(ctx, o, p, options...); err != nil {
			return err
		}
		var said client.PatchOptions
		said.ApplyOptions(options)
		if _, component := o.(*v1alpha1.DynamoComponentDeployment); component && !converts {
			if len(said.DryRun) == 0 {
				t.Error("the record was written, and lost")
			}
			o.SetManagedFields(nil)
		}
		return nil
	}})
	component := func() *v1alpha1.DynamoComponentDeployment {
		return &v1alpha1.DynamoComponentDeployment{ObjectMeta: meta("of-a-graph")}
	}
	old := component()
	old.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.owner, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))}
	old.Annotations = map[string]string{v1alpha1.AnnotationLastAppliedHash: "1"}
	if err := s.client.Create(t.Context(), old, client.FieldOwner(predecessor)); err != nil {
		t.Fatal(err)
	}
	if f, known := fault.From(s.sync(component())); !known || f.Reason != v1alpha1.ReasonConversionUnavailable {
		t.Errorf("it says %+v", f)
	}
	converts = true
	s.must("Adopted DynamoComponentDeployment of-a-graph", component())
}

// TestWhatIsTakenOverIsNotMadeAgain because a field cannot change: it serves.
func TestWhatIsTakenOverIsNotMadeAgain(t *testing.T) {
	s := newStage(t, interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "d", field.ErrorList{field.Invalid(field.NewPath("spec", "x"), "v", "field is immutable")})
	}})
	old := s.leftBehind()
	for range 2 {
		_, err := s.applier.Apply(t.Context(), s.owner, Plan{Children: []graph.Desired{{Object: deployment("a"), RetainTemplates: true}}})
		if f, known := fault.From(err); !known || f.Class != fault.Waiting {
			t.Errorf("it says %v", err)
		}
	}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(old), &appsv1.Deployment{}); err != nil {
		t.Error(err)
	}
}

// TestOnlyAdoptionSaysThatATemplateWasAdopted because users' annotations reach workloads,
// and a template that counts as adopted is not brought up to date.
func TestOnlyAdoptionSaysThatATemplateWasAdopted(t *testing.T) {
	s := newStage(t, interceptor.Funcs{})
	wanted := deployment("a")
	wanted.Annotations = map[string]string{v1alpha1.AnnotationAdoptedTemplates: "pods=1/2", "theirs": "kept"}
	s.must("Created Deployment d", wanted)
	live := &appsv1.Deployment{}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(wanted), live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "kept"}, live.Annotations); diff != "" {
		t.Error(diff)
	}
	s.must("", wanted)
}

// TestAGraphTakesOverWhatItsComponentMade: it replaces the component as its controller, and
// the component leaves it from then on.
func TestAGraphTakesOverWhatItsComponentMade(t *testing.T) {
	of := func(name string) *v1alpha1.DynamoGraphDeployment {
		return &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-uid")}}
	}
	front := func() *corev1.Service {
		s := service("")
		s.Annotations = map[string]string{v1alpha1.AnnotationRolloutIsolation: v1alpha1.IsolationPaired}
		return s
	}
	for name, c := range map[string]struct {
		by        *v1alpha1.DynamoGraphDeployment
		fromChild bool
		taken     bool
	}{
		"its own component's":           {of("g"), true, true},
		"not unless it says so":         {of("g"), false, false},
		"not that of another component": {of("other"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{}, of("g"), of("other"))
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(s.owner), s.owner); err != nil {
				t.Fatal(err)
			}
			s.owner.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of("g"), v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))}
			if err := s.client.Update(t.Context(), s.owner); err != nil {
				t.Fatal(err)
			}
			s.must("Created Service s", service(""))
			_, err := s.applier.Apply(t.Context(), c.by, Plan{Children: []graph.Desired{{Object: front(), FromChild: c.fromChild}}})
			if f, known := fault.From(err); c.taken && err != nil || !c.taken && (!known || f.Reason != v1alpha1.ReasonNameConflict) {
				t.Errorf("taken: %v", err)
			}
			live := &corev1.Service{}
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(front()), live); err != nil {
				t.Fatal(err)
			}
			if len(live.OwnerReferences) != 1 || metav1.IsControlledBy(live, c.by) != c.taken {
				t.Errorf("owners %+v", live.OwnerReferences)
			}
			s.must("", service(""))
		})
	}
}

package apply

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestAPlanIsWrittenInOrder: the owner is held and knows the decision before
// anything is made by it, and what is scaled comes last.
func TestAPlanIsWrittenInOrder(t *testing.T) {
	const owner, made, removed, scaled = "patch DynamoComponentDeployment c", "apply Service s", "delete Deployment d", "scale LeaderWorkerSet g"
	old := deployment("a")
	old.OwnerReferences = []metav1.OwnerReference{{UID: "c-uid", Controller: new(true)}}
	full := Plan{
		Finalizer: true, Annotations: map[string]string{"decided": ""},
		OwnerPatch: map[string]any{"spec": map[string]any{"replicas": 2}},
		Children:   []graph.Desired{{Object: service("")}},
		Owned:      []graph.Object{old},
		Scale:      []workload.Rescaling{{Object: group(2), Replicas: 3}},
	}
	for rule, c := range map[string]struct {
		change func(*Plan)
		fail   int // the number of the write that is refused, from 1
		gone   bool
		edit   func(*v1alpha1.DynamoComponentDeployment) // by a user, since the owner was seen
		want   []string
		failed bool
	}{
		"everything has its place":                        {want: []string{owner, owner, made, removed, scaled}},
		"what is to go goes before anything is made":      {change: func(p *Plan) { p.PruneOnly = true }, want: []string{owner, owner, removed, scaled}},
		"nothing is made by a decision that is not noted": {fail: 1, want: []string{owner}, failed: true},
		"a field of the owner holds nobody up":            {fail: 2, want: []string{owner, owner, made, removed, scaled}, failed: true},
		"nor does a child":                                {fail: 3, want: []string{owner, owner, made, removed, scaled}, failed: true},
		"nothing is written for an owner that is gone":    {gone: true, want: []string{owner}, failed: true},
		"an owner that is as it should be is left alone":  {change: func(p *Plan) { p.Finalizer, p.Annotations, p.OwnerPatch = false, nil, nil }, want: []string{made, removed, scaled}},
		"nothing is removed for an owner that has changed": {
			change: func(p *Plan) { p.Finalizer, p.Annotations, p.OwnerPatch = false, nil, nil },
			edit:   func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Generation++ }, want: []string{made, scaled},
		},
		"in whatever way": {
			change: func(p *Plan) { p.Finalizer, p.Annotations, p.OwnerPatch = false, nil, nil },
			edit:   func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Annotations = map[string]string{"wish": "new"} }, want: []string{made, scaled},
		},
		"nothing at all is written if the decision has to be noted": {
			edit: func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Generation++ }, want: []string{owner}, failed: true,
		},
		"an empty plan writes nothing":                     {change: func(p *Plan) { *p = Plan{} }},
		"an annotation that is empty is an annotation too": {change: func(p *Plan) { *p = Plan{Annotations: map[string]string{"decided": ""}} }, want: []string{owner}},
	} {
		t.Run(rule, func(t *testing.T) {
			var got []string
			write := func(verb, kind, name string) error {
				got = append(got, verb+" "+kind+" "+name)
				if len(got) == c.fail {
					return errors.New("refused")
				}
				return nil
			}
			s := newStage(t, interceptor.Funcs{
				Patch: func(ctx context.Context, cluster client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					if c.gone {
						got = append(got, owner)
						return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
					}
					if err := write("patch", "DynamoComponentDeployment", object.GetName()); err != nil {
						return err
					}
					return cluster.Patch(ctx, object, patch, options...)
				},
				Apply: func(ctx context.Context, cluster client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
					if err := write("apply", "Service", "s"); err != nil {
						return err
					}
					return cluster.Apply(ctx, object, options...)
				},
				Delete: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
					return write("delete", "Deployment", object.GetName())
				},
				SubResourcePatch: func(_ context.Context, _ client.Client, resource string, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					return write(resource, "LeaderWorkerSet", object.GetName())
				},
			})
			s.edit(c.edit)
			plan := full
			if c.change != nil {
				c.change(&plan)
			}
			changes, err := s.applier.Apply(t.Context(), s.owner, plan)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if (err != nil) != c.failed || OwnerDeleted(err) != c.gone || errors.Is(err, ErrOwnerChanged) != (c.failed && c.edit != nil) {
				t.Errorf("error %v", err)
			}
			for _, change := range changes {
				if change.Kind.Kind == v1alpha1.KindDynamoComponentDeployment || change.Kind.Kind == "LeaderWorkerSet" {
					t.Errorf("%s is no change of a child", change)
				}
			}
			live := &v1alpha1.DynamoComponentDeployment{}
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(s.owner), live); err != nil {
				t.Fatal(err)
			}
			noted := c.fail != 1 && !c.gone && c.edit == nil
			if _, found := live.Annotations["decided"]; found != (noted && plan.Annotations != nil) || slices.Contains(live.Finalizers, v1alpha1.Finalizer) != (noted && plan.Finalizer) {
				t.Errorf("owner has annotations %v, finalizers %v", live.Annotations, live.Finalizers)
			}
		})
	}
}

// edit changes the owner on the server, after it was seen.
func (s *stage) edit(change func(*v1alpha1.DynamoComponentDeployment)) {
	s.Helper()
	if err := s.client.Get(s.Context(), client.ObjectKeyFromObject(s.owner), s.owner); err != nil {
		s.Fatal(err)
	}
	if change == nil {
		return
	}
	changed := s.owner.DeepCopy()
	change(changed)
	if err := s.client.Update(s.Context(), changed); err != nil {
		s.Fatal(err)
	}
}

// TestWhatIsSaidOfAnOwnerIsSaidOfTheOneThatWasSeen: fields alone are written to whatever is
// there.
func TestWhatIsSaidOfAnOwnerIsSaidOfTheOneThatWasSeen(t *testing.T) {
	for rule, c := range map[string]struct {
		metadata any
		want     string
	}{
		"fields":         {nil, "engine"},
		"what they mean": {map[string]any{"annotations": map[string]any{"means": "generation 2"}}, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newStage(t, interceptor.Funcs{})
			seen := &v1alpha1.DynamoComponentDeployment{}
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(s.owner), seen); err != nil {
				t.Fatal(err)
			}
			changed := seen.DeepCopy()
			changed.Labels = map[string]string{"by": "a user"}
			if err := s.client.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			patch := map[string]any{"spec": map[string]any{"serviceName": "engine"}}
			if c.metadata != nil {
				patch["metadata"] = c.metadata
			}
			if _, err := s.applier.Apply(t.Context(), seen, Plan{OwnerPatch: patch}); err != nil {
				t.Error(err)
			}
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(s.owner), changed); err != nil {
				t.Fatal(err)
			}
			if changed.Spec.ServiceName != c.want {
				t.Errorf("the service is %q, want %q", changed.Spec.ServiceName, c.want)
			}
		})
	}
}

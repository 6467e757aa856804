package apiversion

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
)

// world is an API server of which a test says whether it can convert.
type world struct {
	*Publisher
	clock *testingclock.FakeClock
	// converts is what reads and writes of v1beta1 come to; reads of one kind alone
	// where that is named.
	converts error
	kind     string
	reach    bool
	// writes are the definitions that were written, with their verbs.
	writes, probes int
}

var errConversion = apierrors.NewInternalError(errors.New(`conversion webhook for nvidia.com/v1beta1, Kind=X failed: Post "https://hook.ops.svc:443/convert": no endpoints available`))

func newWorld(t *testing.T, edits ...func(*apiextensionsv1.CustomResourceDefinition)) *world {
	t.Helper()
	w := &world{reach: true, clock: testingclock.NewFakeClock(time.Unix(1e9, 0))}
	b := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&apiextensionsv1.CustomResourceDefinition{})
	for _, name := range definition.Converted {
		plural, _, _ := strings.Cut(name, ".")
		kind := map[string]string{
			"dynamographdeploymentscalingadapters": v1alpha1.KindDynamoGraphDeploymentScalingAdapter, "dynamocomponentdeployments": v1alpha1.KindDynamoComponentDeployment,
			"dynamographdeploymentrequests": v1alpha1.KindDynamoGraphDeploymentRequest, "dynamographdeployments": v1alpha1.KindDynamoGraphDeployment,
		}[plural]
		crd := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, ListKind: kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
					{Name: "v1alpha1", Served: true, Storage: true}, {Name: "v1beta1"},
				},
			},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1alpha1"}},
		}
		for _, edit := range edits {
			edit(crd)
		}
		b = b.WithObjects(crd)
	}
	beta := func(kind schema.GroupVersionKind) bool { return kind.GroupVersion() == v1beta1.SchemeGroupVersion }
	server := b.WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
				w.writes++
				o.SetGeneration(o.GetGeneration() + 1)
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if beta(o.GetObjectKind().GroupVersionKind()) {
				w.probes++
				w.clock.Step(w.Timing.Probe / 3)
				return w.converts
			}
			return c.Create(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if kind := l.GetObjectKind().GroupVersionKind(); beta(kind) {
				if w.kind != "" && kind.Kind != w.kind+"List" {
					return nil
				}
				return w.converts
			}
			return c.List(ctx, l, opts...)
		},
	}).Build()
	timing := DefaultTiming
	timing.Probe = 50 * time.Millisecond // the deadline is of the real clock
	w.Publisher = &Publisher{
		Direct: server, Serve: true, Namespace: "ops", Timing: timing, Clock: w.clock,
		Converter: definition.Converter{Service: types.NamespacedName{Namespace: "ops", Name: "hook"}, Path: "/convert"},
		Reachable: func(context.Context) (bool, error) { return w.reach, nil },
	}
	w.Trust([]byte("CA"))
	return w
}

// definitions are those of the API server.
func (w *world) definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, name := range definition.Converted {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := w.Direct.Get(t.Context(), types.NamespacedName{Name: name}, crd); err != nil {
			t.Fatal(err)
		}
		all = append(all, crd)
	}
	return all
}

// served are the definitions of which v1beta1 is.
func (w *world) served(t *testing.T) int {
	t.Helper()
	n := 0
	for _, crd := range w.definitions(t) {
		if definition.Served(crd) {
			n++
			if !w.Converter.LeadsTo(crd) {
				t.Errorf("%s is served and not converted", crd.Name)
			}
		}
	}
	return n
}

// betas count the definitions by what is said of v1beta1, and who converts.
func (w *world) betas(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, crd := range w.definitions(t) {
		as, by := "unserved", "nobody"
		switch {
		case definition.Frozen(crd):
			as = "frozen"
		case definition.Served(crd):
			as = "served"
		}
		switch c := crd.Spec.Conversion; {
		case w.Converter.LeadsTo(crd):
			by = "us"
		case c != nil && c.Strategy == apiextensionsv1.WebhookConverter:
			by = "another"
		}
		count[as+" by "+by]++
	}
	return count
}

// byAnother has v1beta1 served by the original's converter.
func byAnother(d *apiextensionsv1.CustomResourceDefinition) {
	d.Spec.Versions[1].Served = true
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig: &apiextensionsv1.WebhookClientConfig{
			CABundle: []byte("CA"), Service: &apiextensionsv1.ServiceReference{Namespace: "original", Name: "hook", Path: new("/convert")},
		},
	}}
}

func storedAsBeta(d *apiextensionsv1.CustomResourceDefinition) {
	d.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
}

func TestAVersionIsServedOnceAConversionWorked(t *testing.T) {
	w := newWorld(t)
	if err := w.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.served(t); n != 4 || w.probes != 1 || w.writes != 8 {
		t.Errorf("%d served, %d conversions tried, %d writes", n, w.probes, w.writes)
	}
	w.writes, w.probes = 0, 0
	for range 3 {
		if err := w.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if w.writes+w.probes != 0 {
		t.Errorf("%d writes and %d tries though nothing changed", w.writes, w.probes)
	}
}

func TestNothingIsServed(t *testing.T) {
	for rule, c := range map[string]struct {
		given    func(*world)
		problem  string
		verdicts int
	}{
		"before somebody answers":      {func(w *world) { w.reach = false }, ErrUnreachable.Error(), 0},
		"before there is an authority": {func(w *world) { w.Trust(nil) }, "no certificate authority", 0},
		"when a conversion fails":      {func(w *world) { w.converts = errConversion }, "try a conversion", 0},
		"by who may not try": {func(w *world) {
			w.converts = apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("may not create"))
		}, "may not create", 0},
		"where it is not wanted": {func(w *world) { w.Serve = false }, "", 0},
		"but what a policy refused was judged": {func(w *world) {
			w.converts = apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("ValidatingAdmissionPolicy 'p' denied"))
		}, "", 4},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t)
			c.given(w)
			err := w.Publish(t.Context())
			if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Errorf("error %v, want %q", err, c.problem)
			}
			if n := w.served(t); n != c.verdicts {
				t.Errorf("%d are served", n)
			}
		})
	}
}

func TestAVersionIsTakenBackWhenConversionsFailAndTriedAgainLater(t *testing.T) {
	w := newWorld(t)
	if err := w.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.converts = errConversion
	if err := w.Publish(t.Context()); err == nil || w.served(t) != 4 {
		t.Fatalf("%v, %d served: one failure is a moment without a replica", err, w.served(t))
	}
	w.clock.Step(w.Timing.Failing)
	if err := w.Publish(t.Context()); err == nil || w.served(t) != 0 {
		t.Fatalf("%v, %d served", err, w.served(t))
	}
	w.writes, w.probes = 0, 0
	if err := w.Publish(t.Context()); err == nil || w.writes+w.probes != 0 {
		t.Errorf("%v, %d writes, %d tries at once", err, w.writes, w.probes)
	}
	w.clock.Step(w.Timing.Backoff)
	if err := w.Publish(t.Context()); err == nil || w.served(t) != 0 || w.probes == 0 {
		t.Errorf("%v, %d served, %d tries", err, w.served(t), w.probes)
	}
	w.converts = nil
	w.clock.Step(2 * w.Timing.Backoff)
	if err := w.Publish(t.Context()); err != nil || w.served(t) != 4 {
		t.Errorf("%v, %d served", err, w.served(t))
	}
}

func TestAnAlphaOnlyClusterIsLedAwayFromTheConverter(t *testing.T) {
	w := newWorld(t)
	if err := w.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Serve = false
	w.Recheck()
	if err := w.Publish(t.Context()); err != nil || w.served(t) != 0 {
		t.Errorf("%v, %d served", err, w.served(t))
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.Direct.Get(t.Context(), types.NamespacedName{Name: definition.Adapters}, crd); err != nil || crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
		t.Errorf("%v, %+v", err, crd.Spec.Conversion)
	}
}

func TestWhoConvertsNoMoreIsNotAskedAnyMore(t *testing.T) {
	for rule, c := range map[string]struct {
		edits     []func(*apiextensionsv1.CustomResourceDefinition)
		meanwhile func(*apiextensionsv1.CustomResourceDefinition)
		want      map[string]int
	}{
		"what was served is frozen":                           {want: map[string]int{"frozen by nobody": 4}},
		"what is stored as v1beta1 waits for one who does":    {edits: []func(*apiextensionsv1.CustomResourceDefinition){storedAsBeta}, want: map[string]int{"unserved by us": 4}},
		"what somebody else converts meanwhile is left alone": {meanwhile: byAnother, want: map[string]int{"served by another": 4}},
		"what is served by nobody is frozen, too": {
			meanwhile: func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Conversion = nil }, want: map[string]int{"frozen by nobody": 4},
		},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t, c.edits...)
			if err := w.Publish(t.Context()); err != nil || w.served(t) != 4 {
				t.Fatalf("%v, %d served", err, w.served(t))
			}
			if c.meanwhile != nil {
				for _, crd := range w.definitions(t) {
					c.meanwhile(crd)
					if err := w.Direct.Update(t.Context(), crd); err != nil {
						t.Fatal(err)
					}
				}
			}
			restarted := &Publisher{Direct: w.Direct, Converter: w.Converter, Namespace: w.Namespace, Timing: w.Timing, Clock: w.clock}
			for range 2 {
				if err := restarted.Publish(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, w.betas(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhatAnotherConvertsIsFrozenOnceItDoesNot because a cluster that was taken over
// has the original's converter in its definitions, and nobody behind it.
func TestWhatAnotherConvertsIsFrozenOnceItDoesNot(t *testing.T) {
	stored := func(d *apiextensionsv1.CustomResourceDefinition) {
		if d.Spec.Names.Kind == v1alpha1.KindDynamoGraphDeploymentRequest {
			storedAsBeta(d)
		}
	}
	for rule, c := range map[string]struct {
		given func(*world)
		edit  func(*apiextensionsv1.CustomResourceDefinition)
		later func(*world)
		want  map[string]int
	}{
		"while it does it is left alone": {want: map[string]int{"served by another": 4}},
		"when it does not for long": {given: func(w *world) { w.converts = errConversion },
			want: map[string]int{"frozen by nobody": 4}},
		"but not for a moment": {given: func(w *world) { w.converts = errConversion }, later: func(w *world) { w.converts = nil },
			want: map[string]int{"served by another": 4}},
		"nor because nobody can be asked": {given: func(w *world) { w.converts = errors.New("connection refused") },
			want: map[string]int{"served by another": 4}},
		"also where one kind alone has objects": {given: func(w *world) { w.converts, w.kind = errConversion, v1alpha1.KindDynamoComponentDeployment },
			want: map[string]int{"frozen by nobody": 4}},
		"also by who does not convert": {given: func(w *world) { w.converts, w.Reachable = errConversion, nil },
			want: map[string]int{"frozen by nobody": 4}},
		"what is stored as v1beta1 is not served": {given: func(w *world) { w.converts, w.reach = errConversion, false }, edit: stored,
			want: map[string]int{"frozen by nobody": 3, "unserved by another": 1}},
	} {
		t.Run(rule, func(t *testing.T) {
			edits := []func(*apiextensionsv1.CustomResourceDefinition){byAnother}
			if c.edit != nil {
				edits = append(edits, c.edit)
			}
			w := newWorld(t, edits...)
			w.Serve = false
			if c.given != nil {
				c.given(w)
			}
			first := w.Publish(t.Context())
			if diff := cmp.Diff(map[string]int{"served by another": 4}, w.betas(t)); diff != "" {
				t.Errorf("at once: %v %s", first, diff)
			}
			if c.later != nil {
				c.later(w)
			}
			w.clock.Step(w.Timing.Failing)
			second := w.Publish(t.Context())
			if diff := cmp.Diff(c.want, w.betas(t)); diff != "" {
				t.Errorf("%v, then %v: %s", first, second, diff)
			}
		})
	}
}

func TestWhatIsStoredAsBetaIsConvertedUntilItIsStoredAnew(t *testing.T) {
	w := newWorld(t, storedAsBeta)
	w.Serve = false // even so
	request := &v1alpha1.DynamoGraphDeploymentRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r"}}
	if err := w.Direct.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := w.Publish(t.Context()); err != nil || len(w.Stored()) != 4 {
		t.Fatalf("%v, %v", err, w.Stored())
	}
	m := &Migrator{Direct: w.Direct, Stored: w.Stored, Done: w.Recheck, Clock: w.clock}
	for _, name := range slices.Clone(w.Stored()) {
		if err := m.Migrate(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Publish(t.Context()); err != nil || len(w.Stored()) != 0 {
		t.Errorf("%v, still stored: %v", err, w.Stored())
	}
	w.writes = 0
	if err := w.Publish(t.Context()); err != nil || w.writes != 0 {
		t.Errorf("%v, %d writes though nothing is to be done", err, w.writes)
	}
}

// Whoever changes a definition while it is being settled is seen at the next look:
// what was read before is not taken for the state that is there after.
func TestADefinitionThatChangesWhileItIsSettledIsReadAgain(t *testing.T) {
	w := newWorld(t)
	if err := w.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, reads, server := definition.Converted[3], 0, w.Direct.(client.WithWatch)
	w.Direct = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, whole := o.(*apiextensionsv1.CustomResourceDefinition); !whole || key.Name != last {
				return err
			}
			reads++
			if reads > 1 {
				return err
			}
			changed := o.DeepCopyObject().(*apiextensionsv1.CustomResourceDefinition)
			changed.Generation++
			if err := server.Update(ctx, changed); err != nil {
				return err
			}
			storedAsBeta(changed)
			return errors.Join(err, server.Status().Update(ctx, changed))
		},
	})
	w.Recheck()
	for range 2 {
		if err := w.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{last}, w.Stored()); diff != "" {
		t.Errorf("stored as v1beta1 (-want +got):\n%s", diff)
	}
}

func TestObjectsAreNotStoredAnewByADefinitionThatStoresBeta(t *testing.T) {
	w := newWorld(t, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true
		d.Status.StoredVersions = []string{"v1beta1"}
	})
	m := &Migrator{Direct: w.Direct, Done: func() {}, Clock: w.clock}
	if err := m.Migrate(t.Context(), definition.Adapters); err == nil || w.writes != 0 {
		t.Errorf("%v, %d writes", err, w.writes)
	}
}

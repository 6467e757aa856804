package observe

import (
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

func TestAGraphIsOrphanedIfWhatRunsItHasNoOwner(t *testing.T) {
	of := func(object client.Object, owned bool) client.Object {
		object.SetNamespace("n")
		object.SetLabels(map[string]string{v1alpha1.LabelGraphName: "g"})
		if owned {
			object.SetOwnerReferences([]metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: "g", UID: "u", Controller: new(true)}})
		}
		return object
	}
	component := func(name string, owned bool) client.Object {
		return of(&v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}, owned)
	}
	set := func(owned bool) client.Object {
		return of(&grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}, owned)
	}
	for rule, c := range map[string]struct {
		finalizers []string
		objects    []client.Object
		want       bool
	}{
		"the garbage collector has yet to look": {[]string{"orphan", v1alpha1.Finalizer}, []client.Object{component("a", true)}, true},
		"its components were orphaned":          {[]string{v1alpha1.Finalizer}, []client.Object{component("a", false), component("b", false)}, true},
		"one was made a moment ago":             {[]string{v1alpha1.Finalizer}, []client.Object{component("a", false), component("b", true)}, true},
		"its PodCliqueSet was orphaned":         {[]string{v1alpha1.Finalizer}, []client.Object{set(false)}, true},
		"deleted in the background":             {[]string{v1alpha1.Finalizer}, []client.Object{component("a", true), set(true)}, false},
		"deleted in the foreground":             {[]string{v1alpha1.Finalizer, "foregroundDeletion"}, []client.Object{component("a", true)}, false},
		"nothing of it is left":                 {[]string{v1alpha1.Finalizer}, nil, false},
	} {
		t.Run(rule, func(t *testing.T) {
			facts := Facts{Direct: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(c.objects...).Build()}
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "g", UID: "u", Finalizers: c.finalizers}}
			got, err := facts.Orphaned(t.Context(), dgd, "set")
			if err != nil || got != c.want {
				t.Errorf("orphaned %v, %v", got, err)
			}
		})
	}
}

func TestAGraphHasTheClaimsThatWereCreatedForIt(t *testing.T) {
	claim := func(namespace, name, uid string, owners ...metav1.OwnerReference) client.Object {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}}
		if uid != "" {
			c.Labels = map[string]string{v1alpha1.LabelGraphName: "g", v1alpha1.LabelGraphUID: uid}
		}
		return c
	}
	facts := Facts{Direct: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		claim("n", "created", "u"), claim("n", "of-an-earlier-operator", "", metav1.OwnerReference{UID: "u"}),
		claim("n", "of-an-earlier-graph", "v"), claim("n", "foreign", ""), claim("elsewhere", "created", "u"),
	).Build()}
	claims, err := facts.Claims(t.Context(), &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "g", UID: "u"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range claims {
		names = append(names, c.GetName())
	}
	if diff := cmp.Diff([]string{"created", "of-an-earlier-operator"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestALabelMakesNothingButAClaimAChild: what a tenant labels is not pruned.
func TestALabelMakesNothingButAClaimAChild(t *testing.T) {
	meta := metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelGraphUID: "u"}}
	if got := ownersOf(&corev1.PersistentVolumeClaim{ObjectMeta: meta}); len(got) != 1 {
		t.Errorf("a claim has owners %v", got)
	}
	if got := ownersOf(&corev1.Service{ObjectMeta: meta}); len(got) != 0 {
		t.Errorf("a Service has owners %v", got)
	}
}

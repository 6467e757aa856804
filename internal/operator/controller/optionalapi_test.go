package controller

import (
	"testing"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
)

// TestWhatGroveMakesWakesItsGraph: a PodCliqueSet has the name of its graph only
// where that leaves room for those of the cliques.
func TestWhatGroveMakesWakesItsGraph(t *testing.T) {
	const graph, cut = "a-graph-with-a-name-that-leaves-no-room", "a-graph-with-a-name-that-1b2c"
	of := func(name string, owner *metav1.OwnerReference) *grovev1alpha1.PodCliqueSet {
		set := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: "1"}}
		if owner != nil {
			set.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		return set
	}
	ofGraph := func(name string) *metav1.OwnerReference {
		return metav1.NewControllerRef(&metav1.ObjectMeta{Name: name, UID: "2"}, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(of("chat", ofGraph("chat")), of(cut, ofGraph(graph)), of("alone", nil)).Build()
	owned := func(kind, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "lab", Name: "x", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(&metav1.ObjectMeta{Name: name, UID: "1"}, grovev1alpha1.SchemeGroupVersion.WithKind(kind)),
		}}
	}
	inGroup := owned("PodCliqueScalingGroup", cut+"-0-decode")
	inGroup.Labels = map[string]string{common.LabelManagedByKey: common.LabelManagedByValue, common.LabelPartOfKey: cut}
	for rule, c := range map[string]struct {
		made metav1.ObjectMeta
		want string
	}{
		"of a set with the name of its graph":     {owned("PodCliqueSet", "chat"), "chat"},
		"of a set whose name was cut":             {owned("PodCliqueSet", cut), graph},
		"of a scaling group of such a set":        {inGroup, graph},
		"of a set that somebody else made":        {owned("PodCliqueSet", "alone"), ""},
		"of a set that is gone: its own deletion": {owned("PodCliqueSet", "gone"), ""},
		"of nobody": {metav1.ObjectMeta{Namespace: "lab", Name: "x"}, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			got := ""
			for _, request := range graphOfClique(cluster)(t.Context(), &grovev1alpha1.PodClique{ObjectMeta: c.made}) {
				got = request.Name
			}
			if got != c.want {
				t.Errorf("woke %q, want %q", got, c.want)
			}
		})
	}
}

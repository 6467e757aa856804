package e2e

import (
	"fmt"
	"strings"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// longest are names of graphs and components: the longest whose LeaderWorkerSet
// keeps its own name, the first that does not, and the longest of all.
func longest() []string {
	const service = "-decode-0"
	return []string{strings.Repeat("a", 50-len(service)), strings.Repeat("b", 51-len(service)), strings.Repeat("c", 63)}
}

// TestTheLongestNamesRunAsLeaderWorkerSets: the controller of LeaderWorkerSets makes
// workers for every name that is admitted.
func TestTheLongestNamesRunAsLeaderWorkerSets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range longest() {
		w.create(w.spanningRest(name, 2))
	}
	alone := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: strings.Repeat("d", 63)}}
	alone.Spec.SharedSpec = *w.spanningRest("", 2).Spec.Services["decode"]
	w.create(alone)
	for _, name := range longest() {
		w.ready(name)
	}
	w.available(alone.Name)
	var sets lwsv1.LeaderWorkerSetList
	if err := w.cluster.Client.List(w.ctx, &sets, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, set := range sets.Items {
		if len(set.Name) > 50 {
			t.Errorf("LeaderWorkerSet %s has %d characters", set.Name, len(set.Name))
		}
		if set.Name == longest()[0]+"-decode-0" {
			kept++
		}
	}
	if len(sets.Items) != 4 || kept != 1 {
		t.Errorf("%d sets, %d under its own name", len(sets.Items), kept)
	}
}

// TestTheLongestNamesRunOnGrove: Grove's webhook, which does not run here, refuses a
// set in which its own, a scaling group's and a clique's name have more than 45
// characters together.
func TestTheLongestNamesRunOnGrove(t *testing.T) {
	w := newWorldOn(t, need(t, grove))
	for i, name := range longest() {
		dgd := w.spanningRest(name, 2)
		dgd.Spec.Services[fmt.Sprintf("A%s", strings.Repeat("wide", 15))] = dgd.Spec.Services["decode"].DeepCopy()
		dgd.Spec.Services[fmt.Sprintf("B%s", strings.Repeat("narrow", 10))] = w.restful("").Spec.Services["prefill"]
		if i == 0 {
			dgd.Name = "short"
		}
		w.create(dgd)
	}
	w.ready("short")
	w.ready(longest()[1])
	w.ready(longest()[2])
	var sets grovev1alpha1.PodCliqueSetList
	if err := w.cluster.Client.List(w.ctx, &sets, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, set := range sets.Items {
		grouped := map[string]string{}
		for _, group := range set.Spec.Template.PodCliqueScalingGroupConfigs {
			for _, clique := range group.CliqueNames {
				grouped[clique] = group.Name
			}
		}
		for _, clique := range set.Spec.Template.Cliques {
			if sum := len(set.Name) + len(grouped[clique.Name]) + len(clique.Name); sum > 45 {
				t.Errorf("%s, %s and %s have %d characters", set.Name, grouped[clique.Name], clique.Name, sum)
			}
		}
	}
	if len(sets.Items) != 3 {
		t.Errorf("%d sets", len(sets.Items))
	}
}

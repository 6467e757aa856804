package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// budgets follows the PodDisruptionBudgets of a world: which generations they count, one
// word for each change, by name. The floor they keep must be the same throughout.
func (w world) budgets(least int) func() map[string][]string {
	w.Helper()
	changes, err := cluster.Client.Watch(w.ctx, &policyv1.PodDisruptionBudgetList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	seen := map[string][]string{}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range changes.ResultChan() {
			b, is := event.Object.(*policyv1.PodDisruptionBudget)
			if !is {
				return
			}
			word := "all"
			if among := b.Spec.Selector.MatchExpressions[0]; among.Key == v1alpha1.LabelGeneration {
				word = strings.Join(among.Values, "+")
			}
			if of := seen[b.Name]; len(of) == 0 || of[len(of)-1] != word {
				seen[b.Name] = append(of, word)
			}
			if n := b.Spec.MinAvailable.IntValue(); n != least {
				w.Errorf("%s keeps %d pods, and not %d", b.Name, n, least)
			}
		}
	})
	return func() map[string][]string { changes.Stop(); done.Wait(); return seen }
}

// TestEvictionsAreCountedInGenerationsThatServe: while one generation replaces another,
// only those that are complete keep the floor; before and after, every pod does.
func TestEvictionsAreCountedInGenerationsThatServe(t *testing.T) {
	const replicas = 2
	w := newWorld(t)
	w.operate(generational)
	w.rollOut()
	k := w.runPods()
	dgd := w.pair(replicas)
	dgd.Annotations = map[string]string{v1alpha1.AnnotationDisruptionBudget: "true"}
	seen := w.budgets(replicas)
	w.create(dgd)
	w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	k.promise(replicas, replicas)
	first := get(w, &v1alpha1.DynamoComponentDeployment{}, "chat-decode").Labels[v1alpha1.LabelGeneration]

	w.image(dgd, "1.1.0")
	second := w.phase("Completed", func(d *v1alpha1.DynamoGraphDeployment) bool { return d.Status.Rollout.Stable != first }).Status.Rollout.Stable
	w.eventually("every pod to count again", func(ctx context.Context) error {
		for _, name := range []string{"chat-decode", "chat-prefill"} {
			b := &policyv1.PodDisruptionBudget{}
			if err := cluster.Client.Get(ctx, w.key(name), b); err != nil {
				return err
			}
			if among := b.Spec.Selector.MatchExpressions[0]; among.Key == v1alpha1.LabelGeneration {
				return fmt.Errorf("%s counts %v", name, among.Values)
			}
		}
		return nil
	})
	both := []string{first, second}
	slices.Sort(both)
	for name, words := range seen() {
		if want := []string{"all", first, strings.Join(both, "+"), second, "all"}; !inOrder(words, want) {
			t.Errorf("%s counted the generations %v; want some of %v in this order, from the first to the last", name, words, want)
		}
	}

	w.merge(dgd, fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"}}}`, v1alpha1.AnnotationDisruptionBudget))
	for _, name := range []string{"chat-decode", "chat-prefill"} {
		w.gone(&policyv1.PodDisruptionBudget{}, name)
	}
}

// inOrder reports whether words are some of all, in order, with both ends and at least one
// in between: that both generations were complete may last shorter than a look.
func inOrder(words, all []string) bool {
	if len(words) < 3 || words[0] != all[0] || words[len(words)-1] != all[len(all)-1] {
		return false
	}
	at := 0
	for _, word := range words {
		next := slices.Index(all[at:], word)
		if next < 0 {
			return false
		}
		at += next + 1
	}
	return true
}

package converter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/process"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// TestReplicasAreReplacedInOrder under traffic in both versions, of which none may
// fail.
func TestReplicasAreReplacedInOrder(t *testing.T) {
	if *rounds == 0 {
		t.Skip("counts failures under 50 requests a second, on a machine of its own: run make converter")
	}
	for round := range *rounds {
		eventually(t, "two replicas", func(ctx context.Context) error { return replicas(ctx, 2) })
		before, err := pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f := newTraffic(t)
		f.more(t, 2*perSecond)
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"lab/round":"%d-%d"}}}}}`, round, time.Now().UnixNano())
		d := &appsv1.Deployment{}
		d.Namespace, d.Name = converterKey.Namespace, converterKey.Name
		if err := cluster.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "both replicas to be replaced", func(ctx context.Context) error {
			now, err := pods(ctx) // those that still answer their last requests included
			if err != nil {
				return err
			}
			for _, pod := range now {
				if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.Name == pod.Name }) {
					return fmt.Errorf("%s is still there", pod.Name)
				}
			}
			return replicas(ctx, 2)
		})
		f.more(t, 2*perSecond)
		all := f.end()
		for _, version := range []string{alpha, beta} {
			n, last := failures(all, version)
			if n > 0 {
				t.Errorf("%d requests of %s failed, at last: %v", n, version, last)
			}
		}
		n, _ := failures(all, beta)
		summary.Line(t, "converter: round %d, %d reads and writes in both versions while two replicas were replaced in order, %d failures", round+1, len(all), n)
	}
}

// scale sets how many replicas there are to be.
func scale(t *testing.T, n int) {
	t.Helper()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = converterKey.Namespace, converterKey.Name
	if err := cluster.Client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n))); err != nil {
		t.Fatal(err)
	}
}

// TestTheOperatorWorksWhileNothingConverts kills all replicas of the converter under
// traffic. The operator makes a graph meanwhile and scales others, whatever version
// they were written in; clients of v1alpha1 notice nothing, and those of v1beta1 fail
// until a replica is back.
//
// Without rounds there is no traffic: a machine that tests beside it keep busy fails
// requests, too.
func TestTheOperatorWorksWhileNothingConverts(t *testing.T) {
	for round := range max(1, *rounds) {
		eventually(t, "two replicas", func(ctx context.Context) error { return replicas(ctx, 2) })
		name := func(what string) string { return fmt.Sprintf("%s-%d", what, round) }
		for version, graphName := range map[string]string{alpha: name("as-alpha"), beta: name("as-beta")} {
			if err := cluster.Client.Create(t.Context(), graph(version, graphName, 1)); err != nil {
				t.Fatal(err)
			}
			ready(t, graphName, 1)
		}
		edit(t, name("as-alpha"))
		subjects(t)
		f := &traffic{stop: func() {}}
		if *rounds > 0 {
			f = newTraffic(t)
			f.more(t, perSecond)
		}

		killed := time.Now()
		scale(t, 0)
		list, err := pods(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range list {
			if pid, err := process.InPod(pod.UID); err == nil {
				if err := process.Kill(pid); err != nil {
					t.Log(err) // it has ended by itself
				}
			}
		}
		eventually(t, "nobody to convert", func(ctx context.Context) error {
			return errors.Join(replicas(ctx, 0), unanswered(ctx))
		})

		// A graph that is made now, one that was written as v1beta1, and one whose
		// component somebody wrote as v1beta1, so that it has to wait.
		if err := cluster.Client.Create(t.Context(), graph(alpha, name("meanwhile"), 1)); err != nil {
			t.Fatal(err)
		}
		ready(t, name("meanwhile"), 1)
		setReplicas(t, name("as-beta"), 2)
		ready(t, name("as-beta"), 2)
		setReplicas(t, name("as-alpha"), 2)
		eventually(t, "the graph to say what it waits for", func(ctx context.Context) error {
			return says(ctx, name("as-alpha"), v1alpha1.ReasonConversionUnavailable)
		})
		if err := unanswered(t.Context()); err != nil {
			t.Fatalf("this was not seen while nothing converted: %v", err)
		}

		scale(t, 2)
		eventually(t, "a replica to convert again", answered)
		back := time.Now()
		ready(t, name("as-alpha"), 2)
		eventually(t, "two replicas", func(ctx context.Context) error { return replicas(ctx, 2) })
		if *rounds == 0 {
			return
		}
		f.more(t, 2*perSecond)
		all := f.end()
		if n, last := failures(all, alpha); n > 0 {
			t.Errorf("%d requests of %s failed, at last: %v", n, alpha, last)
		}
		within, outside := 0, 0
		for _, r := range all {
			switch {
			case r.version != beta || r.err == nil:
			case r.begun.Before(killed.Add(-time.Second)) || r.begun.After(back):
				outside++
				t.Errorf("a %s of %s failed %s after the converter was back: %v", r.verb, beta, r.begun.Sub(back), r.err)
			default:
				within++
			}
		}
		summary.Line(t, "converter: round %d, %d reads and writes in both versions while all replicas were killed and away for %s: %s none failed, %s %d failed in that time and %d outside",
			round+1, len(all), back.Sub(killed).Round(time.Second), alpha, beta, within, outside)
	}
}

// edit writes a label to a graph's component as v1beta1, so that its managed fields
// are of both versions.
func edit(t *testing.T, graphName string) {
	t.Helper()
	o := object(beta, "DynamoComponentDeployment", graphName+"-frontend", "")
	o.SetLabels(map[string]string{"lab": "edited"})
	if err := cluster.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
}

// setReplicas changes a graph as v1alpha1.
func setReplicas(t *testing.T, graphName string, n int) {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Namespace, dgd.Name = lab, graphName
	patch := fmt.Appendf(nil, `{"spec":{"services":{"Frontend":{"replicas":%d}}}}`, n)
	if err := cluster.Client.Patch(t.Context(), dgd, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// ready waits until a graph says, about what it was last told, that its replicas are
// ready. It is read as v1alpha1.
func ready(t *testing.T, graphName string, n int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s to have %d replicas", graphName, n), func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: lab, Name: graphName}, dgd); err != nil {
			return err
		}
		s := dgd.Status.Services["Frontend"]
		if dgd.Status.ObservedGeneration != dgd.Generation || dgd.Status.State != v1alpha1.GraphStateSuccessful || s.ReadyReplicas == nil || *s.ReadyReplicas != n {
			return fmt.Errorf("state %s, %+v, %+v", dgd.Status.State, s, dgd.Status.Conditions)
		}
		return nil
	})
}

func says(ctx context.Context, graphName, reason string) error {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: lab, Name: graphName}, dgd); err != nil {
		return err
	}
	for _, c := range dgd.Status.Conditions {
		if c.Reason == reason && strings.Contains(c.Message, "converter") {
			return nil
		}
	}
	return fmt.Errorf("%+v", dgd.Status.Conditions)
}

// TestWhatUsersWriteIsNeverApplied reads in the audit log how the operator wrote
// graphs, requests and adapters in all the tests before: an apply would have needed
// the converter.
func TestWhatUsersWriteIsNeverApplied(t *testing.T) {
	seen := map[string]int{}
	err := auditlog.Of(cluster.Kubeconfig).Since(0, func(e auditlog.Entry) {
		switch {
		case !e.Writes() || !strings.HasSuffix(e.User.Username, ":dynamo-operator-controller-manager"):
		case e.Ref.Resource != "dynamographdeployments" && e.Ref.Resource != "dynamographdeploymentrequests" && e.Ref.Resource != "dynamographdeploymentscalingadapters":
		default:
			seen[e.String()]++
			if e.Applies() || e.Ref.APIVersion != "v1alpha1" {
				t.Errorf("the operator sent %s %s", e.Verb, e.URI)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen["patch dynamographdeployments"] == 0 || seen["patch dynamographdeployments/status"] == 0 {
		t.Errorf("nothing was written, so nothing is shown: %v", seen)
	}
}

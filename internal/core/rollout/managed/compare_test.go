package managed_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/pairing"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
)

// seen is what scraping came to: a share of the candidate's requests failed, and none of
// those beside them.
func seen(errors float64) map[string]analysis.Series {
	at, s := time.Unix(0, 0), analysis.Series{}
	for n := range 40 { // ten minutes
		count := float64(1000 * n)
		s = s.Observe(analysis.Look{
			At: at.Add(time.Duration(n) * 15 * time.Second), Stable: map[string]analysis.Counters{"a": {Requests: count}},
			Candidate: map[string]analysis.Counters{"b": {Requests: count, Errors: errors * count}},
		})
	}
	return map[string]analysis.Series{"decode+prefill": s}
}

// atStep has a candidate held at the first step.
func atStep(t *testing.T, annotations map[string]string) *cluster {
	t.Helper()
	c := start(t, 4)
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "25% 10m"
	maps.Copy(c.dgd.Annotations, annotations)
	c.image("example.com/engine:1.1.0")
	c.until("the step", func(managed.Decision) bool {
		return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Held"
	})
	return c
}

func TestACandidateThatServesWorseIsAborted(t *testing.T) {
	c := atStep(t, nil)
	stable, candidate := c.dgd.Status.Rollout.Stable, c.dgd.Status.Rollout.Target
	old := c.uids(stable)
	c.requests = seen(.05)
	c.until("the candidate to be aborted", func(managed.Decision) bool { return c.dgd.Status.Rollout.Phase == "Aborted" })
	st := c.dgd.Status.Rollout
	if st.Reason != string(analysis.AbortRegression) || c.dgd.Status.State != v1alpha1.GraphStateFailed {
		t.Errorf("it says %s: %s", st.Reason, st.Message)
	}
	want := &v1alpha1.RolloutAnalysis{Verdict: "fail", Errors: []string{"5.0%", "0.0%"}, Samples: 39000}
	if diff := cmp.Diff(want, st.Analysis); diff != "" {
		t.Errorf("analysis (-want +got):\n%s", diff)
	}
	for _, uid := range old {
		if !slices.Contains(c.uids(stable), uid) {
			t.Errorf("pod %s of the stable generation was replaced", uid)
		}
	}
	if n := len(c.uids(candidate)); n > 0 {
		t.Errorf("%d pods of the candidate are left", n)
	}
	c.quiet()
}

func TestWhatAComparisonCountsFor(t *testing.T) {
	completed := func(c *cluster) bool { return c.dgd.Status.Rollout.Phase == "Completed" }
	for rule, x := range map[string]struct {
		annotations map[string]string
		promote     bool
		seen        map[string]analysis.Series
		want        func(*cluster) bool
	}{
		"too little seen passes a timed step":   {nil, false, nil, completed},
		"a candidate that is as good passes it": {nil, false, seen(0), completed},
		"where it is required, too little does not": {map[string]string{v1alpha1.AnnotationRolloutAnalysis: "required"}, false, nil, func(c *cluster) bool {
			return c.dgd.Status.Rollout.Reason == string(policy.WaitsForAnalysis)
		}},
		"and enough does":                    {map[string]string{v1alpha1.AnnotationRolloutAnalysis: "required"}, false, seen(0), completed},
		"where it is off, nothing is judged": {map[string]string{v1alpha1.AnnotationRolloutAnalysis: "off"}, false, seen(.05), completed},
		"a user's word goes over it":         {nil, true, seen(.05), completed},
		"an objective is judged, too": {map[string]string{v1alpha1.AnnotationRolloutSLO: "errors<0.1%"}, false, seen(.009), func(c *cluster) bool {
			return c.dgd.Status.Rollout.Reason == string(analysis.AbortRegression)
		}},
		"where failures hold, it stays": {map[string]string{v1alpha1.AnnotationRolloutOnFailure: "hold"}, false, seen(.05), func(c *cluster) bool {
			return c.dgd.Status.Rollout.Phase == "Held" && c.dgd.Status.Rollout.Reason == string(analysis.AbortRegression)
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			c := atStep(t, x.annotations)
			if x.promote {
				c.dgd.Annotations[v1alpha1.AnnotationRolloutPromote] = c.dgd.Status.Rollout.Target + "/all"
			}
			c.requests = x.seen
			c.until(rule, func(managed.Decision) bool { return x.want(c) })
			if c.dgd.Status.Rollout.Phase == "Held" {
				c.requests = nil // as after a restart of the operator
				for range 200 {  // longer than the step
					c.reconcile()
					c.life()
				}
				if !x.want(c) {
					t.Errorf("it went on: %+v", c.dgd.Status.Rollout)
				}
			}
		})
	}
}

// input is what is known of the generations of the graph.
func (c *cluster) input() managed.Input {
	c.Helper()
	d := c.defaults
	d.Running = graph.ReadRunning(c.dgd, c.owned)
	g, err := graph.FromGraphDeployment(c.dgd, d)
	if err != nil {
		c.Fatal(err)
	}
	g = pairing.Of(c.dgd, g, workload.ProviderComponent, d.Running, true)
	b := component.Builder{Graph: c.dgd, Defaults: d}
	return managed.Input{
		Owner: c.dgd, Graph: g, Policy: policy.Policy{Analysis: policy.AnalysisGuard, Retry: c.dgd.Annotations[v1alpha1.AnnotationRolloutRetry]}, Revisions: c.revisions,
		Cells: world.Cells(g, b.Members(g, snapshot.Snapshot{Owned: c.owned, Taken: c.now}), world.Rules{Isolated: true, Recorded: generation.ID(g.Generation), Named: func(service, id string, first bool) graph.Membership { return b.Named(g, service, id, first) }}),
		Sight: world.Sight{Pods: c.pods, Now: c.now},
	}
}

func TestWhichPodsAreCompared(t *testing.T) {
	c := atStep(t, nil)
	for i := range c.pods {
		c.pods[i].Status.PodIP = fmt.Sprint("10.0.0.", i+1)
		c.pods[i].Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "system", ContainerPort: 9191}}
	}
	c.pods[0].Status.PodIP = ""
	c.pods[1].Labels[lwsv1.WorkerIndexLabelKey] = "1"
	in := c.input()
	got := managed.Comparisons(in)
	if len(got) != 1 || got[0].Cell != "decode+prefill" || got[0].Candidate != c.dgd.Status.Rollout.Target || got[0].Stable != c.dgd.Status.Rollout.Stable {
		t.Fatalf("compared %+v", got)
	}
	var want []analysis.Pod
	for _, p := range c.pods[2:] {
		if p.DeletionTimestamp != nil || len(p.Status.Conditions) == 0 {
			continue
		}
		decodes := p.Labels[v1alpha1.LabelComponent] == "decode"
		want = append(want, analysis.Pod{
			UID: string(p.UID), Address: netip.MustParseAddr(p.Status.PodIP), Port: 9191,
			Candidate: p.Labels[v1alpha1.LabelGeneration] == got[0].Candidate, Duty: analysis.Duty{Entry: decodes, FirstToken: !decodes},
		})
	}
	if diff := cmp.Diff(want, got[0].Pods, cmpopts.EquateComparable(netip.Addr{}), cmpopts.SortSlices(func(a, b analysis.Pod) bool { return a.UID < b.UID })); diff != "" || len(want) < 4 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Policy.Analysis = policy.AnalysisOff
	if off := managed.Comparisons(in); len(off) != 0 {
		t.Errorf("though it is off: %+v", off)
	}
}

// pairsAtStep has a candidate with frontends of its own held at the first step.
func pairsAtStep(t *testing.T) *cluster {
	t.Helper()
	c := begin(t, 4, under(graph.ContractV1), pairs(), "frontend", "prefill", "decode")
	c.quiet()
	c.dgd.Annotations[v1alpha1.AnnotationRolloutSteps] = "25% 10m"
	c.image("example.com/engine:1.1.0")
	c.until("the step", func(managed.Decision) bool {
		return c.dgd.Status.Rollout != nil && c.dgd.Status.Rollout.Phase == "Held"
	})
	return c
}

// TestACandidateWhoseFrontendsAloneServeWorseIsAborted: its workers know nothing of
// requests that fail before they come to them.
func TestACandidateWhoseFrontendsAloneServeWorseIsAborted(t *testing.T) {
	const cell = "decode+frontend+prefill"
	good, bad := seen(0)["decode+prefill"], seen(.05)["decode+prefill"]
	for rule, x := range map[string]struct {
		requests map[string]analysis.Series
		phase    string
	}{
		"frontends that fail":                       {map[string]analysis.Series{cell: good, cell + "/frontends": bad}, "Aborted"},
		"workers that fail, though it is made good": {map[string]analysis.Series{cell: bad, cell + "/frontends": good}, "Aborted"},
		"workers that fail, by themselves":          {map[string]analysis.Series{cell: bad}, "Aborted"},
		"neither":                                   {map[string]analysis.Series{cell: good, cell + "/frontends": good}, "Completed"},
	} {
		t.Run(rule, func(t *testing.T) {
			c := pairsAtStep(t)
			c.requests = x.requests
			c.until(x.phase, func(managed.Decision) bool {
				phase := c.dgd.Status.Rollout.Phase
				return phase == "Aborted" || phase == "Completed"
			})
			if st := c.dgd.Status.Rollout; st.Phase != x.phase || x.phase == "Aborted" && st.Reason != string(analysis.AbortRegression) {
				t.Errorf("%s (%s): %s", st.Phase, st.Reason, st.Message)
			}
		})
	}
}

// TestWhoHasTheWordOfACandidateWithFrontends: they have, if they can tell.
func TestWhoHasTheWordOfACandidateWithFrontends(t *testing.T) {
	const cell = "decode+frontend+prefill"
	good, alone := seen(0)["decode+prefill"], analysis.Series{}
	for n := range 40 { // frontends of the stable generation that count no requests
		alone = alone.Observe(analysis.Look{
			At: time.Unix(0, 0).Add(time.Duration(n) * 15 * time.Second), Candidate: map[string]analysis.Counters{"b": {Requests: float64(2000 * n)}},
		})
	}
	for rule, x := range map[string]struct {
		requests map[string]analysis.Series
		want     v1alpha1.RolloutAnalysis
	}{
		"frontends that can":                         {map[string]analysis.Series{cell + "/frontends": good}, v1alpha1.RolloutAnalysis{Verdict: "pass", Samples: 39000}},
		"workers where frontends cannot":             {map[string]analysis.Series{cell: good, cell + "/frontends": alone}, v1alpha1.RolloutAnalysis{Verdict: "pass", Samples: 39000}},
		"frontends that saw some, if workers cannot": {map[string]analysis.Series{cell + "/frontends": alone}, v1alpha1.RolloutAnalysis{Verdict: "inconclusive", Samples: 78000}},
		"workers if frontends saw none":              {map[string]analysis.Series{cell: alone}, v1alpha1.RolloutAnalysis{Verdict: "inconclusive", Samples: 78000}},
	} {
		t.Run(rule, func(t *testing.T) {
			c := pairsAtStep(t)
			c.requests = x.requests
			c.reconcile()
			if diff := cmp.Diff(&x.want, c.dgd.Status.Rollout.Analysis, cmpopts.IgnoreFields(v1alpha1.RolloutAnalysis{}, "Errors")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFrontendsOfPairsAreCompared(t *testing.T) {
	c := pairsAtStep(t)
	for i := range c.pods {
		c.pods[i].Status.PodIP = fmt.Sprint("10.0.0.", i+1)
	}
	got := managed.Comparisons(c.input())
	if len(got) != 2 || got[1].Cell != got[0].Cell+"/frontends" || got[1].Candidate != got[0].Candidate || got[1].Stable != got[0].Stable || got[1].Revision != got[0].Revision {
		t.Fatalf("compared %+v", got)
	}
	var want []analysis.Pod
	for _, p := range c.pods {
		if p.Labels[v1alpha1.LabelComponent] == "frontend" && p.DeletionTimestamp == nil && len(p.Status.Conditions) > 0 {
			want = append(want, analysis.Pod{
				UID: string(p.UID), Address: netip.MustParseAddr(p.Status.PodIP), Port: 8000,
				Candidate: p.Labels[v1alpha1.LabelGeneration] == got[0].Candidate, Duty: analysis.Duty{Entry: true, FirstToken: true},
			})
		}
	}
	if diff := cmp.Diff(want, got[1].Pods, cmpopts.EquateComparable(netip.Addr{}), cmpopts.SortSlices(func(a, b analysis.Pod) bool { return a.UID < b.UID })); diff != "" || len(want) < 4 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package requestplan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

func to(namespace string) func(*v1alpha1.DynamoGraphDeploymentRequest) {
	return func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		r.Spec.DeploymentOverrides = &v1alpha1.DeploymentOverrides{Namespace: namespace}
	}
}

// TestAnotherNamespaceHasToConsent goes through what can be missing at each of the
// moments that count: when the work begins, when ConfigMaps are made, and when the
// graph is.
func TestAnotherNamespaceHasToConsent(t *testing.T) {
	p := policy
	p.Scope = validation.Scope{ClusterWide: true, Reserved: []string{"kube-system"}}
	const valid = "Validation True ValidationPassed"
	granted := &Consent{Grants: []Grant{{Account: "poor", Lacks: Rights}, {Account: "rich"}}}
	accepted := &Record{Attempt: "1", Spec: asked(to("prod")).Spec}
	output := func(c *Consent) Sight {
		return profiled(Sight{Record: accepted, Consent: c, Output: map[string]string{profileoutput.KeyGraph: dataYAML + "---\n" + graphYAML}})
	}
	const notGranted = "NamespaceNotGranted no ServiceAccount of namespace prod allows requests from namespace team; whoever administers prod does so with: " +
		"kubectl annotate serviceaccount NAME --namespace prod nvidia.com/allow-graph-requests-from=team"
	for name, test := range map[string]struct {
		request *v1alpha1.DynamoGraphDeploymentRequest
		seen    Sight
		want    string
	}{
		"nothing begins without consent":       {asked(to("prod")), Sight{Consent: &Consent{}}, "Pending\nValidation False " + notGranted},
		"consent that was not read is none":    {asked(to("prod")), Sight{}, "Pending\nValidation False " + notGranted},
		"with consent it begins":               {asked(to("prod")), Sight{Consent: granted}, "Pending wants inputs\n" + valid},
		"in its own namespace it needs none":   {asked(to("team")), Sight{}, "Pending wants inputs\n" + valid},
		"ConfigMaps wait for consent":          {at("Profiling", to("prod")), output(&Consent{}), "Profiling\n" + valid + "\nProfiling True ProfilingCompleted\nSpecGenerated False " + notGranted},
		"ConfigMaps are made with it":          {at("Profiling", to("prod")), output(granted), "Deploying wants extras\n" + valid + "\nProfiling True ProfilingCompleted\nSpecGenerated True SpecGenerated"},
		"consent withdrawn stops the graph":    {at("Deploying", to("prod"), found), Sight{Record: accepted, Consent: &Consent{}}, "Deploying\n" + valid + "\nDeploymentReady False " + notGranted},
		"with it the graph is made":            {at("Deploying", to("prod"), found), Sight{Record: accepted, Consent: granted}, "Deploying wants graph\n" + valid},
		"the spec as it is now does not count": {at("Deploying", to("team"), found), Sight{Record: accepted, Consent: &Consent{}}, "Deploying\nValidation False SpecChangeRejected the spec was changed after profiling began and the change has no effect; change it back, or make another request\nDeploymentReady False " + notGranted},
		"an account gives no more than it has": {
			at("Deploying", to("prod"), found), Sight{Record: accepted, Consent: &Consent{Grants: []Grant{{Account: "poor", Lacks: Rights[:1]}}}},
			"Deploying\n" + valid + "\nDeploymentReady False GrantInsufficient ServiceAccount prod/poor allows requests from namespace team, but may not itself create dynamographdeployments.nvidia.com; bind it to a Role that may",
		},
		"while nobody judges who asks, nothing is made": {
			at("Deploying", to("prod"), found), Sight{Record: accepted, Consent: &Consent{Grants: granted.Grants, Policy: snapshot.PolicyState{Problems: []string{"X is not bound"}}}},
			"Deploying\n" + valid + "\nDeploymentReady False PolicyNotInForce nothing is made in other namespaces while nobody judges who asks for it: X is not bound; install the operator's policies again",
		},
		"namespaces of the system are refused": {asked(to("kube-system")), Sight{Consent: granted}, "Failed\nValidation False ValidationFailed spec.deploymentOverrides.namespace: Forbidden: it is of the system, of the operator, or excluded from its work"},
		"also if they became such since": {
			at("Deploying", to("kube-system"), found), Sight{Record: &Record{Attempt: "1", Spec: asked(to("kube-system")).Spec}, Consent: granted},
			"Deploying\n" + valid + "\nDeploymentReady False NamespaceReserved graphs are not made in namespace kube-system: it is of the system, of the operator, or excluded from its work",
		},
		"no account of the target is borrowed": {
			at("Deploying", to("prod"), found, runsAs("deployer")), Sight{Record: accepted, Consent: granted},
			"Failed\n" + valid + "\nDeploymentReady False DeploymentRefused service A names ServiceAccount deployer of namespace prod; a graph from another namespace runs as rich, which allows it, or as an account that the operator makes",
		},
		"but the one that consents is": {at("Deploying", to("prod"), found, runsAs("rich")), Sight{Record: accepted, Consent: granted}, "Deploying wants graph\n" + valid},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(test.request, test.seen, p, noon)
			if diff := cmp.Diff(test.want, told(step)); diff != "" {
				t.Error(diff)
			}
			if step.Wants == Graph && step.Generated.Graph.Namespace != "prod" {
				t.Errorf("the graph goes to %s", step.Generated.Graph.Namespace)
			}
		})
	}
}

// runsAs has the generated graph name an account.
func runsAs(account string) func(*v1alpha1.DynamoGraphDeploymentRequest) {
	return func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		raw := string(r.Status.GeneratedDeployment.Raw)
		r.Status.GeneratedDeployment.Raw = []byte(strings.TrimSuffix(raw, "}") + `,"spec":{"services":{"A":{"extraPodSpec":{"serviceAccountName":"` + account + `"}}}}}`)
	}
}

// TestOnlyWhatTheProfilerWroteCounts changes what can be changed by somebody who
// may write ConfigMaps and nothing else.
func TestOnlyWhatTheProfilerWroteCounts(t *testing.T) {
	const again = "; nothing is made from it. Change the request, or make it again, to have it profiled anew"
	evil := strings.ReplaceAll(graphYAML, "image: x", "image: evil")
	fresh := func() Sight {
		return profiled(Sight{Record: record(), Output: map[string]string{profileoutput.KeyGraph: graphYAML}})
	}
	for name, test := range map[string]struct {
		seen Sight
		want string
	}{
		"what it wrote is taken": {fresh(), ""},
		"what is beside it is not": {with(fresh(), func(s *Sight) {
			s.Output[profileoutput.KeyResult] = profileoutput.Result{State: profileoutput.Succeeded, GeneratedDeployment: evil}.Text()
		}), ""},
		"what was changed is not":                {with(fresh(), func(s *Sight) { s.Output[profileoutput.KeyGraph] = evil }), "key config_with_planner.yaml of ConfigMap dgdr-output-goal is not what the profiler wrote" + again},
		"what was removed is missed":             {with(fresh(), func(s *Sight) { delete(s.Output, profileoutput.KeyGraph) }), "key config_with_planner.yaml of ConfigMap dgdr-output-goal is gone" + again},
		"without a pod there is no proof":        {with(fresh(), func(s *Sight) { s.Pods = nil }), "nothing proves what the profiler left: the pod that profiled is gone" + again},
		"a pod of another Job proves nothing":    {with(fresh(), func(s *Sight) { s.Pods[0].OwnerReferences[0].UID = "other" }), "nothing proves what the profiler left: the pod that profiled is gone" + again},
		"a pod that says nothing proves nothing": {with(fresh(), func(s *Sight) { s.Pods[0].Status.ContainerStatuses[0].State.Terminated.Message = "" }), "nothing proves what the profiler left: parse the termination message: unexpected end of JSON input" + again},
		"a profiler of others does not vouch for itself": {with(fresh(), func(s *Sight) {
			s.Pods[0].Status.ContainerStatuses = append(s.Pods[0].Status.ContainerStatuses, terminated(CollectorContainer, 0, profileoutput.Receipt{"dgdr-output-goal/config_with_planner.yaml": profileoutput.Sum("other")}.Text()))
		}), "key config_with_planner.yaml of ConfigMap dgdr-output-goal is not what the profiler wrote" + again},
		"once it is in the status the pod may go": {with(fresh(), func(s *Sight) {
			s.Record.Receipt, s.Pods = profileoutput.Receipt{"dgdr-output-goal/config_with_planner.yaml": profileoutput.Sum(graphYAML)}, nil
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			step := Next(at("Profiling"), test.seen, policy, noon)
			f, _ := step.Finding(v1alpha1.ConditionSpecGenerated)
			if test.want != "" && (f.Reason != v1alpha1.ReasonOutputNotProven || step.Generated != nil || step.State != v1alpha1.RequestStateFailed) {
				t.Errorf("it is %s with %+v", step.State, f)
			}
			if f.Message != test.want {
				t.Errorf("it says %q, want %q", f.Message, test.want)
			}
			if test.want == "" && step.Generated.Graph.Spec.Services["Planner"].ExtraPodSpec.MainContainer.Image != "x" {
				t.Error("the graph is another")
			}
		})
	}
}

func with(s Sight, change func(*Sight)) Sight {
	change(&s)
	return s
}

func TestProfileDataFollowsOnlyAsItWasWritten(t *testing.T) {
	accepted := &Record{Attempt: "1", Spec: asked(to("prod")).Spec}
	found := profileoutput.Result{State: profileoutput.Succeeded, GeneratedDeployment: graphYAML, ProfileData: "goal-profile-data"}
	fresh := func() Sight {
		return profiled(Sight{
			Record: accepted, Consent: &Consent{Grants: []Grant{{Account: "a"}}}, Output: map[string]string{profileoutput.KeyResult: found.Text()},
			ProfileData: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "goal-profile-data"}, Data: map[string]string{"prefill_raw_data.json": "{}"}},
		})
	}
	step := Next(at("Profiling", to("prod")), fresh(), policy, noon)
	if step.Wants != Extras || len(step.Generated.Extras) != 1 || step.Generated.Extras[0].Namespace != "prod" {
		t.Errorf("%s", told(step))
	}
	for name, change := range map[string]func(*Sight){
		"changed": func(s *Sight) { s.ProfileData.Data["prefill_raw_data.json"] = "evil" },
		"removed": func(s *Sight) { s.ProfileData = nil },
	} {
		if step := Next(at("Profiling", to("prod")), with(fresh(), change), policy, noon); step.State != v1alpha1.RequestStateFailed || step.Wants != Nothing {
			t.Errorf("%s: %s", name, told(step))
		}
	}
	unreceipted := with(fresh(), func(s *Sight) { s.ProfileData.Data["more"] = "evil" })
	if step := Next(at("Profiling", to("prod")), unreceipted, policy, noon); step.Wants != Extras || len(step.Generated.Extras[0].Data) != 1 {
		t.Errorf("what was added goes along: %s", told(step))
	}
}

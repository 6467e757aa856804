package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
)

// trouble is a service that is not ready, and why.
type trouble struct {
	service string
	status  v1alpha1.ServiceReplicaStatus
	cause   diagnosis.Cause
	found   bool
}

// Explanation is why a graph is not ready: the way from the graph down to what
// fails, and what to do about it.
type Explanation struct {
	// Ready graphs have nothing but a first step.
	Ready bool
	// Steps lead from the graph to what ails it, each below the one before.
	Steps []string
	// Cause and Todo are empty where there is nothing to say.
	Cause, Todo string
	// Also are the other services that wait, a line each.
	Also []string
}

// Lines draws it for a terminal.
func (e Explanation) Lines() []string {
	var lines []string
	for depth, step := range e.Steps {
		if depth > 0 {
			step = strings.Repeat("   ", depth-1) + "└─ " + step
		}
		lines = append(lines, step)
	}
	if e.Cause != "" {
		lines = append(lines, "cause: "+e.Cause)
	}
	if e.Todo != "" {
		lines = append(lines, "what to do: "+e.Todo)
	}
	for _, line := range e.Also {
		lines = append(lines, "also not ready: "+line)
	}
	return lines
}

// explain tells the first cause in full, from the graph down to the container, and
// each other service that waits in a line.
func explain(f finding) Explanation {
	ready := meta.FindStatusCondition(f.graph.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || f.graph.Status.ObservedGeneration < f.graph.Generation:
		return Explanation{
			Steps: []string{fmt.Sprintf("graph %s: the operator has not looked at its latest version yet", f.graph.Name)},
			Todo:  "see that the operator runs: kubectl -n dynamo-system get pods",
		}
	case ready.Status == metav1.ConditionTrue:
		return Explanation{Ready: true, Steps: []string{fmt.Sprintf("graph %s is ready: %s", f.graph.Name, ready.Message)}}
	}
	troubles := f.troubles()
	if len(troubles) == 0 || !troubles[0].found && !waits(ready.Reason) {
		return reported(f.graph, ready)
	}
	e := chain(f.graph, troubles[0])
	for _, t := range troubles[1:] {
		e.Also = append(e.Also, fmt.Sprintf("%s %s: %s", tree.Word(f.graph), t.service, t.line()))
	}
	return e
}

// waits reports whether a reason says no more than that something is not done.
func waits(reason string) bool {
	return reason == v1alpha1.ReasonServicesNotReady || slices.Contains(diagnosis.Reasons(), diagnosis.Reason(reason))
}

// troubles are the services that are not ready, those first that need a person.
func (f finding) troubles() []trouble {
	var all []trouble
	for service := range f.graph.Spec.SortedServices() {
		t := trouble{service: service, status: f.graph.Status.Services[service]}
		t.cause, t.found = diagnosis.First(f.seen[service])
		if t.found || t.status.Message != "" {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Compare(a.weight(), b.weight()) })
	return all
}

func (t trouble) weight() int {
	if !t.found {
		return len(diagnosis.Reasons())
	}
	return slices.Index(diagnosis.Reasons(), t.cause.Reason)
}

func (t trouble) line() string {
	if t.found {
		return t.cause.Message
	}
	return t.status.Message
}

// chain is the way from a graph to what ails it.
func chain(g *v1alpha1.DynamoGraphDeployment, t trouble) Explanation {
	var e Explanation
	step := func(format string, args ...any) { e.Steps = append(e.Steps, fmt.Sprintf(format, args...)) }
	step("graph %s", g.Name)
	step("%s %s  %s", tree.Word(g), t.service, t.count())
	if t.status.ComponentName != "" {
		step("%s %s", t.status.ComponentKind, t.status.ComponentName)
	}
	if t.cause.Workload != "" {
		step("%s cannot make pods", strings.Replace(t.cause.Workload, "/", " ", 1))
	}
	if t.cause.Pod != "" {
		step("pod %s  %s", t.cause.Pod, place(t.cause))
	}
	if t.cause.Container != "" {
		step("container %s", t.cause.Container)
	}
	if e.Cause = t.status.Message; t.found {
		e.Cause, e.Todo = fmt.Sprintf("%s: %s", t.cause.Reason, t.cause.Message), advice(g.Namespace, t.cause)
	}
	return e
}

func (t trouble) count() string {
	ready := ptr.Deref(t.status.ReadyReplicas, ptr.Deref(t.status.AvailableReplicas, 0))
	return fmt.Sprintf("%d/%d ready", ready, t.status.Replicas)
}

func place(c diagnosis.Cause) string {
	if c.Node == "" {
		return "on no node"
	}
	return "on " + c.Node
}

// advice puts names where the advice leaves them open.
func advice(namespace string, c diagnosis.Cause) string {
	return strings.NewReplacer("POD", "-n "+namespace+" "+c.Pod, "CONTAINER", c.Container).Replace(c.Reason.Advice())
}

// remedies are for reasons that are not about pods.
var remedies = map[string]string{
	v1alpha1.ReasonOrchestratorUnavailable: "install what the message names; the graph goes on by itself",
	v1alpha1.ReasonValidationFailed:        "mend the graph's spec; kubectl dynamo validate -f FILE checks it beforehand",
	v1alpha1.ReasonNameConflict:            "rename the service or the graph, or remove the object that has the name",
	v1alpha1.ReasonChildTerminating:        "nothing, as long as what is named goes; see its finalizers if it does not",
	v1alpha1.ReasonQueueNotFound:           "make the queue, or name another",
	v1alpha1.ReasonRolloutStuck:            "see why the new pods do not come up; the old ones go on running",
	v1alpha1.ReasonReconcileFailed:         "see the operator's log if it does not go away; it is tried again",
}

// reported is what the operator says, where the pods say nothing.
func reported(g *v1alpha1.DynamoGraphDeployment, ready *metav1.Condition) Explanation {
	return Explanation{
		Steps: []string{"graph " + g.Name},
		Cause: fmt.Sprintf("%s: %s", ready.Reason, ready.Message),
		Todo:  cmp.Or(remedies[ready.Reason], diagnosis.Reason(ready.Reason).Advice()),
	}
}

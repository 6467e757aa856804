// Package view turns what was observed into what the console's pages show. It is
// pure: objects and the time come in as values, and it decides nothing about a
// graph that the operator, `status` or `why` do not say already.
package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Tone is how well something is. It chooses a colour, and never alone: each tone
// has a mark, and stands beside a word.
type Tone string

// The tones.
const (
	Good Tone = "good"
	Busy Tone = "busy"
	Bad  Tone = "bad"
	Off  Tone = "off"
)

// Mark is what shows a tone without its colour.
func (t Tone) Mark() string {
	switch t {
	case Good:
		return "✓"
	case Busy:
		return "◐"
	case Bad:
		return "✕"
	default:
		return "○"
	}
}

// State is how something is, in a word.
type State struct {
	Word string
	Tone Tone
}

// GraphState is how a graph is, by what the operator reported.
func GraphState(dgd *v1alpha1.DynamoGraphDeployment) State {
	s := State{Word: tree.State(dgd), Tone: Busy}
	ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case dgd.DeletionTimestamp != nil:
		return State{"being deleted", Off}
	case ready == nil:
		s.Tone = Off
	case ready.Status == metav1.ConditionTrue:
		if s.Tone = Good; asleep(dgd) {
			s.Tone = Off
		}
	case dgd.Status.State == v1alpha1.GraphStateFailed, faulty(ready.Reason):
		s.Tone = Bad
	}
	return s
}

// faulty reports whether a reason is one that a person has to act upon.
func faulty(reason string) bool {
	r := diagnosis.Reason(reason)
	return slices.Contains(diagnosis.Reasons(), r) && r.Fault()
}

// PodState is how a pod is.
func PodState(pod corev1.Pod) State {
	s := State{Word: tree.PodState(pod), Tone: Busy}
	switch s.Word {
	case "Ready":
		s.Tone = Good
	case "Terminating":
		s.Tone = Off
	case "Pending", "ContainerCreating", "PodInitializing", "Running":
		s.Tone = Busy
	case "Succeeded":
		s = State{"Completed", Off}
	default:
		s.Tone = Bad
	}
	return s
}

// ConditionState is how a condition is: one that is true is good, but for those whose
// being true is no merit.
func ConditionState(c metav1.Condition) State {
	switch c.Status {
	case metav1.ConditionTrue:
		switch c.Type {
		case v1alpha1.ConditionDormant:
			return State{"true", Off}
		case v1alpha1.ConditionScalingLimited:
			return State{"true", Busy}
		}
		return State{"true", Good}
	case metav1.ConditionFalse:
		if c.Type == v1alpha1.ConditionDormant {
			return State{"false", sleepState(c).Tone}
		}
		if faulty(c.Reason) || c.Type == v1alpha1.ConditionProgressing || c.Type == v1alpha1.ConditionValid || c.Type == v1alpha1.ConditionValidation {
			return State{"false", Bad}
		}
		return State{"false", Busy}
	default:
		return State{"unknown", Off}
	}
}

// Condition is one condition in words.
type Condition struct {
	Type, Reason, Message, Since string
	State                        State
}

// Conditions are those of an object, the one that sums up the others first.
func Conditions(all []metav1.Condition, now time.Time) []Condition {
	var out []Condition
	for _, c := range all {
		out = append(out, Condition{Type: c.Type, Reason: c.Reason, Message: c.Message, Since: Age(c.LastTransitionTime, now), State: ConditionState(c)})
	}
	slices.SortStableFunc(out, func(a, b Condition) int {
		return cmp.Or(first(b.Type)-first(a.Type), cmp.Compare(a.Type, b.Type))
	})
	return out
}

func first(kind string) int {
	if kind == v1alpha1.ConditionReady || kind == v1alpha1.ConditionSucceeded {
		return 1
	}
	return 0
}

// Age is how long ago something was, as kubectl says it.
func Age(at metav1.Time, now time.Time) string {
	return age(at.Time, now)
}

func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(at)))
}

// RoleOf is what a service does in its graph.
func RoleOf(s *v1alpha1.SharedSpec) graph.Role {
	role := graph.RoleOf(string(s.ComponentType))
	switch {
	case role == graph.RoleWorker && s.SubComponentType == v1alpha1.SubComponentTypePrefill:
		return graph.RolePrefill
	case role == graph.RoleWorker && s.SubComponentType == v1alpha1.SubComponentTypeDecode:
		return graph.RoleDecode
	default:
		return role
	}
}

// Index holds pods by graph, so that a page of many graphs walks them once.
type Index map[string][]corev1.Pod

// IndexPods sorts pods by the graph that they belong to.
func IndexPods(pods []corev1.Pod) Index {
	index := Index{}
	for _, p := range pods {
		if name := p.Labels[v1alpha1.LabelGraphName]; name != "" {
			index[p.Namespace+"/"+name] = append(index[p.Namespace+"/"+name], p)
		}
	}
	return index
}

// Of are the pods of one graph.
func (i Index) Of(dgd *v1alpha1.DynamoGraphDeployment) []corev1.Pod {
	return i[dgd.Namespace+"/"+dgd.Name]
}

// plural puts a count before a noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return itoa(n) + " " + noun + "s"
}

func join(words []string) string { return strings.Join(words, ", ") }

package view

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
)

// sleeping is the word for a graph that scaled to zero, and for its workers.
const sleeping = "asleep"

// asleep reports whether the operator says that a graph sleeps.
func asleep(g *v1alpha1.DynamoGraphDeployment) bool {
	return dormancy.Told(g.Status.Conditions) == dormancy.Dormant
}

// runsEngine reports whether a service is one of those that end while its graph sleeps.
func runsEngine(g *v1alpha1.DynamoGraphDeployment, service string) bool {
	spec := g.Spec.Services[service]
	return spec != nil && RoleOf(spec).RunsEngine()
}

// NoModel says why a graph cannot be asked whose frontend tells no model.
func NoModel(g *v1alpha1.DynamoGraphDeployment) string {
	if asleep(g) {
		return "It is asleep, and was never asked: which models it serves is not known. Wake it to ask."
	}
	return "The frontend serves no model yet."
}

// Sleep is what a graph that scales to zero does about that, in words.
type Sleep struct {
	State State
	Title string
	Facts []Fact
	// Wake is where to post to wake it; empty unless it sleeps.
	Wake string
}

// Awake reports that there is nothing to tell but that it may sleep later.
func (s *Sleep) Awake() bool { return s == nil || s.State.Tone == Good }

// sleepState is how a graph is by its condition Dormant.
func sleepState(c metav1.Condition) State {
	switch dormancy.Told([]metav1.Condition{c}) {
	case dormancy.Dormant:
		return State{sleeping, Off}
	case dormancy.Waking:
		return State{"waking", Busy}
	case dormancy.Active:
		return State{"awake", Good}
	default:
		return State{"does not sleep", Off}
	}
}

// sleepOf tells since when a graph sleeps, why, and how it wakes; nil of one that never
// does.
func sleepOf(g *v1alpha1.DynamoGraphDeployment, now time.Time) *Sleep {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionDormant)
	if c == nil {
		return nil
	}
	s := &Sleep{State: sleepState(*c)}
	tell := func(name, value string) { s.Facts = append(s.Facts, Fact{name, value}) }
	settings, on := dormancy.Read(g.Annotations)
	held := "are held for up to " + duration.HumanDuration(settings.Timeout) + " while workers start"
	since := Age(c.LastTransitionTime, now)
	switch dormancy.Told(g.Status.Conditions) {
	case dormancy.Dormant:
		s.Title, s.Wake = "It is asleep", "/graphs/"+g.Namespace+"/"+g.Name+"/changes/wake"
		tell("Since", since+" ago")
		why := c.Message
		if on {
			why += ". They end after " + duration.HumanDuration(settings.After) + " without one"
		}
		tell("Why", why)
		tell("It wakes", "with the next request, as with a question on the graph's page, or by kubectl dynamo scale wake "+g.Name+" --namespace "+g.Namespace)
		if on {
			tell("Requests", held)
		}
	case dormancy.Waking:
		s.Title = "Its workers start"
		tell("Since", since+" ago")
		if on {
			tell("Requests", held)
		}
	case dormancy.Active:
		s.Title = "It is awake"
		tell("Since", since+" ago")
		tell("It sleeps", c.Message)
	default:
		s.Title = "It does not sleep"
		tell("Why", c.Message)
	}
	return s
}

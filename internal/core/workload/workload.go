// Package workload is the interface between a graph and the orchestrator that runs
// its pods. Each orchestrator implements Builder in a folder of its own; the
// shapes of foreign kinds stay there.
package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Builder turns the components of a graph into the objects of one orchestrator,
// and reads back how far those objects are.
type Builder interface {
	// Build returns the objects that run the components, in the order in which
	// they are to be made.
	Build(g *graph.Graph, pods Pods) ([]graph.Object, error)
	// Progress reports what the snapshot shows of each component, in the order
	// of the components.
	Progress(g *graph.Graph, s snapshot.Snapshot) []Progress
}

// GraphBuilder is a Builder that runs whole graphs. There is one for each Provider.
// What only some of them do is in the interfaces below, so that nobody has to know
// which provider it is.
type GraphBuilder interface {
	Builder
	// Made names an object if it is one that Build returns.
	Made(object graph.Object) (graph.Ref, bool)
	// Mark is the id of the last restart that the workload of a component carries,
	// if that was made.
	Mark(g *graph.Graph, c graph.Component, s snapshot.Snapshot) (id string, made bool)
	// InOrder sees to it that components start after those that they are to start
	// after: it changes or leaves out some of what is desired.
	InOrder(g *graph.Graph, desired []graph.Desired, s snapshot.Snapshot) []graph.Desired
}

// PodOwner runs the pods of a graph without components in between. The graph
// itself then looks after what pods need and leave: Services, routes, keys in a
// store, and the reasons why they do not run.
type PodOwner interface {
	// OwnsPod reports whether a pod is one of its, by the labels of the pod.
	OwnsPod(labels map[string]string) bool
}

// Rescaler reads the number of replicas once, when it makes something of what
// Build returned: from then on the number is set there.
type Rescaler interface {
	// Rescale lists what runs with another number than a component asks for.
	Rescale(components []graph.Component, s snapshot.Snapshot) []Rescaling
}

// Rescaling is a live object and the replicas that it is to have.
type Rescaling struct {
	Object   graph.Object
	Replicas int32
}

// Updater replaces pods in a way of its own, one change of a graph at a time.
type Updater interface {
	// Updating reports whether the last change is still being carried out.
	Updating(g *graph.Graph, s snapshot.Snapshot) bool
}

// Packer packs pods into domains of a topology.
type Packer interface {
	// Levels is the graph's condition TopologyLevelsAvailable as what runs the graph
	// shows it; nil if nothing of the graph is packed, or not yet.
	Levels(g *graph.Graph, s snapshot.Snapshot) *metav1.Condition
}

// Generational runs workers in generations: each is a set of objects of its own, of
// which several can run at the same time.
type Generational interface {
	// Members are the workers that were made, by service and generation.
	Members(g *graph.Graph, s snapshot.Snapshot) []Member
	// Named is what a worker is called in a generation, the first of its graph or a
	// later one.
	Named(g *graph.Graph, service, generation string, first bool) graph.Membership
	// Unfit is why the workers of a graph cannot come in generations; empty if they can.
	Unfit(g *graph.Graph) string
	// Whole says that a generation is made in one piece, with a replica of everything
	// that is to have some.
	Whole() bool
	// Carry keeps workers as they are stored out of what is desired, or in it.
	Carry(g *graph.Graph, desired []graph.Desired, c Carried, s snapshot.Snapshot) []graph.Desired
}

// Carried are workers that are not rendered from their graph.
type Carried struct {
	// Left are services that stay as they are stored, or whose turn has not come.
	Left []string
	// Rolling are services whose numbers of replicas are told one step at a time.
	Rolling []string
	// Stay are what runs the generations that there are, but for one that goes.
	Stay []Member
}

// Member is what runs a service of a graph in one generation of its workers.
type Member struct {
	Service string
	// Generation is opaque: it may be another operator's.
	Generation string
	// Object is the live one that belongs to the graph, and Scaled what others have made
	// from it and takes the number of replicas; nil where that is the object itself, or
	// was not made yet.
	Object, Scaled graph.Object
	// Name is what it is called there.
	Name graph.Membership
	// Stored is the worker as it was last told to be.
	Stored   graph.Component
	Replicas int32
	// Unasked says that it was to have none, and has what others could not make it without.
	Unasked bool
	// Foreign is one that another operator made, or this one under another contract:
	// what it was told cannot be compared.
	Foreign bool
}

// Told is how many replicas it was told to have.
func (m Member) Told() int32 {
	if m.Unasked {
		return 0
	}
	return m.Replicas
}

// Runs is the name of what its pods hang on.
func (m Member) Runs() string {
	if m.Scaled != nil {
		return m.Scaled.GetName()
	}
	return m.Object.GetName()
}

// Queuer has pods scheduled from a queue.
type Queuer interface {
	// SchedulingQueue is empty where there are no queues.
	SchedulingQueue() string
}

// Pods renders the pod template of a component for a place in its group.
type Pods func(c graph.Component, at engine.Group) (corev1.PodTemplateSpec, error)

// Kind is the kind of object that runs a component's pods.
type Kind string

const (
	KindDeployment            Kind = "Deployment"
	KindLeaderWorkerSet       Kind = "LeaderWorkerSet"
	KindPodClique             Kind = "PodClique"
	KindPodCliqueScalingGroup Kind = "PodCliqueScalingGroup"
)

// Progress is how far a component's workload is.
type Progress struct {
	Kind Kind
	Name string
	// Replicas exist, Updated of them are of the current spec.
	Replicas, Updated int32
	// Ready, Available and Scheduled are nil where the orchestrator does not count them.
	Ready, Available, Scheduled *int32
	// Done is true when the current spec runs in full and nothing of an older
	// one is left. Otherwise Why says what is missing.
	Done bool
	Why  string
	// Reason is the one of a condition, where the workload itself has told why it
	// is not done; empty where its pods have to be asked.
	Reason string
	// Waiting are services that have to be ready before this one is started.
	Waiting []string
	// Stuck is true when the workload has made no progress for as long as it is
	// given. Due is when it will be, if nothing moves until then; zero where the
	// orchestrator itself tells.
	Stuck bool
	Due   time.Time
	// Behind are groups that run an older spec until it is their turn.
	Behind []string
	// Seen is what is known of the pods, for whoever asks why.
	Seen snapshot.Evidence
	// Startup is how long pods took to be ready, where somebody else saw them; nil where
	// Seen tells.
	Startup *v1alpha1.StartupTimes
}

package compat

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// reason is why we differ on purpose, and where.
type reason struct {
	// title says in a few words what differs; why, what the original does, what
	// we do, and for whose sake.
	title, why string
	// aside marks what no operator decided, so that it does not count.
	aside bool
	where []where
}

// where is a set of differences. What is left empty matches everything.
type where struct {
	path     workload.Provider
	manifest string
	// kind may be several, with | between them.
	kind string
	// name and leaf have to match whole; a leaf of "" is a whole object.
	name, leaf *regexp.Regexp
	// holds compares the two values. The helpers below are for it.
	holds func(theirs, ours string) bool
}

func (w where) matches(d difference) bool {
	matches := func(re *regexp.Regexp, s string) bool { return re == nil || re.MatchString(s) }
	return (w.path == "" || w.path == d.path) &&
		(w.manifest == "" || w.manifest == d.manifest) &&
		(w.kind == "" || slices.Contains(strings.Split(w.kind, "|"), d.kind)) &&
		matches(w.name, d.name) && matches(w.leaf, d.leaf) &&
		(w.holds == nil || w.holds(d.theirs, d.ours))
}

func exactly(pattern string) *regexp.Regexp { return regexp.MustCompile("^(?:" + pattern + ")$") }

func added(theirs, _ string) bool   { return theirs == "" }
func dropped(_, ours string) bool   { return ours == "" }
func differs(theirs, o string) bool { return theirs != "" && o != "" }

// object is the leaf of a whole object.
var object = exactly("")

// brokenProbe is a published graph whose startup probe has no handler.
const brokenProbe = "examples/deployments/GKE/vllm/disagg.yaml"

// january lists every reason to differ from the original of January 2026.
var january = []*reason{
	{
		title: "One Service a component",
		why:   "The original makes three Services for each component (`x`, `x-p`, `x-d`), two of them alike and one that selects nothing. We make `x`.",
		where: []where{{path: workload.ProviderComponent, kind: "Service", name: exactly(".*-[pd]"), leaf: object, holds: dropped}},
	},
	{
		title: "A Service selects its own component",
		why:   "The original selects by type and Dynamo namespace, so the Service of the prefill workers also reaches the decode workers. Ours adds the component and the graph to the selector.",
		where: []where{{kind: "Service", leaf: exactly(`spec\.selector\[nvidia\.com/dynamo-(component|graph-deployment-name)\]`), holds: added}},
	},
	{
		title: "SSH keys only where MPI needs them",
		why:   "The original copies one SSH key from its own namespace into every namespace with a graph. We generate one for each namespace, only where a TensorRT-LLM component spans nodes, under the same name.",
		where: []where{
			{kind: "Secret", name: exactly("mpi-ssh"), leaf: object, holds: dropped},
			{kind: "Secret", name: exactly("mpi-ssh"), leaf: exactly(`metadata\.labels\[nvidia\.com/managed-by\]`), holds: added},
		},
	},
	{
		title: "The leader's address reaches programs that no shell starts",
		why:   "The original gives the leader of a LeaderWorkerSet `$LWS_LEADER_ADDRESS` as an argument, which nothing expands without a shell: the engine cannot start. We write `$(LWS_LEADER_ADDRESS)`, which the kubelet expands.",
		where: []where{{
			path: workload.ProviderComponent, kind: "LeaderWorkerSet",
			leaf: exactly(`spec\.leaderWorkerTemplate\.leaderTemplate\.spec\.containers\[main\]\.args\[\d+\]`),
			holds: func(theirs, ours string) bool {
				return ours == strings.ReplaceAll(theirs, "$LWS_LEADER_ADDRESS", "$(LWS_LEADER_ADDRESS)")
			},
		}},
	},
	{
		title: "Waiting for the workers' names is one step",
		why:   "Before `mpirun`, the leader waits until its workers have names. The original's wait is several shell statements that go on after an SSH key could not be copied; ours is one step of the chain, in words of our own. What comes before and after is the same.",
		where: []where{{
			path: workload.ProviderComponent, kind: "LeaderWorkerSet",
			leaf:  exactly(`spec\.leaderWorkerTemplate\.leaderTemplate\.spec\.containers\[main\]\.args\[0\]`),
			holds: sameButForWaiting,
		}},
	},
	{
		title: "A LeaderWorkerSet says how it is rolled out",
		why:   "The original sends an empty `rolloutStrategy.type`, which the API refuses unless a webhook mends it first. We send the API's own defaults.",
		where: []where{{path: workload.ProviderComponent, kind: "LeaderWorkerSet", leaf: exactly(`spec\.rolloutStrategy\..*`)}},
	},
	{
		title: "A probe that only tunes timing keeps its handler",
		why:   "One graph gives its worker a startup probe without a handler. The original drops the default handler, so the API refuses the Deployment and the component has neither pods nor a Service. We keep the handler.",
		where: []where{
			{path: workload.ProviderComponent, manifest: brokenProbe, name: exactly(".*-vllmdecodeworker"), leaf: object, holds: added},
			{path: workload.ProviderGrove, manifest: brokenProbe, kind: "PodCliqueSet", leaf: exactly(`.*\.startupProbe\.httpGet\..*`), holds: added},
		},
	},
	{
		title: "The Service of a model belongs to all who serve it",
		why:   "The headless Service of a base model is shared by the graphs of a namespace. The original makes the first of them its controller, so it vanishes with that one while others need it. With us each of them owns it, and it goes with the last.",
		where: []where{{kind: "Service", name: exactly("dynamo-model-.*"), leaf: exactly(`metadata\.ownerReferences\[.*\]\.(controller|blockOwnerDeletion)`), holds: dropped}},
	},
	{
		title: "Cliques stand in the order of their names",
		why:   "The original takes the order of a Go map, which is another one each time. Cliques start in any order or by `startsAfter`, so it means nothing; ours is stable.",
		where: []where{{path: workload.ProviderGrove, kind: "PodCliqueSet", leaf: exactly(`spec\.template\.(cliques|podCliqueScalingGroups)\.\(order\)`), holds: differs}},
	},
	{
		title: "A user's graph stays as it was written",
		why:   "To set a finalizer the original writes the whole graph back, which adds the zero values of its Go types (`name: \"\"`, `resources: {}`, `size: \"0\"`) and drops empty lists and nulls. Into a graph's spec we write nothing but the replicas of a service that a scaling adapter has, and no such values into its components.",
		aside: true,
		where: []where{
			{leaf: exactly(`spec\.(services\.[^.]+\.)?extraPodSpec\.mainContainer\.(name|resources)`), holds: func(theirs, ours string) bool {
				return ours == "" && (theirs == `""` || theirs == "{}")
			}},
			{kind: "DynamoGraphDeployment", leaf: exactly(`spec\.pvcs\[[^\]]+\]\.size`), holds: func(theirs, ours string) bool { return theirs == `"0"` && ours == "" }},
			{kind: "DynamoGraphDeployment", holds: func(theirs, ours string) bool { return theirs == "" && (ours == "[]" || ours == "null") }},
			// A plugin without a name is addressed by its place, one with an
			// empty name by that.
			{kind: "DynamoGraphDeployment", leaf: exactly(`spec\.services\.[^.]+\.eppConfig\.config\.plugins.*`)},
		},
	},
	{
		title: "Other programs' defaults",
		why:   "The recordings were made without LeaderWorkerSet's webhook, which fills this in for either operator.",
		aside: true,
		where: []where{{kind: "LeaderWorkerSet", leaf: exactly(`spec\.networkConfig\.subdomainPolicy`), holds: added}},
	},
	{
		title: "Contents of SSH keys",
		why:   "They are secret, random, and left out of the recordings.",
		aside: true,
		where: []where{{kind: "Secret", name: exactly("mpi-ssh"), leaf: exactly(`data\[private\.key(\.pub)?\]`), holds: differs}},
	},
}

// sameButForWaiting compares two scripts of a leader without the part between
// the set-up of SSH and mpirun.
func sameButForWaiting(theirs, ours string) bool {
	const setUp, launch = "> ~/.ssh/config ", " mpirun "
	theirHead, theirRest, found := strings.Cut(theirs, setUp)
	if !found {
		return false
	}
	ourHead, ourRest, _ := strings.Cut(ours, setUp)
	_, theirTail, found := strings.Cut(theirRest, launch)
	_, ourTail, _ := strings.Cut(ourRest, launch)
	return found && theirHead == ourHead && theirTail == ourTail
}

package grove

import (
	"fmt"
	"regexp"
	"strconv"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Cliques of a component whose pods share the memory of GPUs. For each node of the
// group, a rank, there are
//
//	<clique>-gms-<rank>    a server that holds the weights
//	engines                <clique> on one node; <clique>-ldr and <clique>-wkr-<rank>
//
// The engines of a rank start after its server and get the same GPUs.
func serverClique(c graph.Component, rank int) string {
	return fmt.Sprintf("%s-gms-%d", c.Clique, rank)
}

func engineClique(c graph.Component, rank int) string {
	switch {
	case !c.Multinode():
		return c.Clique
	case rank == 0:
		return c.LeaderClique()
	default:
		return fmt.Sprintf("%s-%d", c.WorkerClique(), rank)
	}
}

// ofRank are names of those cliques whose pods serve no API. A service on one node may
// have such a name; it has no group.
var ofRank = regexp.MustCompile(`(-gms|` + regexp.QuoteMeta(graph.Component{}.WorkerClique()) + `)-[0-9]+$`)

// sharing are those cliques.
func (b Builder) sharing(c graph.Component, pods workload.Pods) ([]*grovev1alpha1.PodCliqueTemplateSpec, error) {
	engines := int32(1)
	if c.Failover != nil {
		engines += c.Failover.Shadows
	}
	var cliques []*grovev1alpha1.PodCliqueTemplateSpec
	for rank := range int(c.Nodes) {
		served := func(_ graph.Component, _ engine.Group) (corev1.PodTemplateSpec, error) {
			template, err := pods(c, engine.Group{Position: engine.Alone, Nodes: 1})
			if err == nil {
				pod.ShareAcrossPods(&template, c, rank)
				pod.WeightServer(&template, c)
			}
			return template, err
		}
		server, err := b.clique(c, serverClique(c, rank), 1, engine.Group{}, served)
		if err != nil {
			return nil, err
		}
		joined := func(c graph.Component, at engine.Group) (corev1.PodTemplateSpec, error) {
			template, err := pods(pod.LoadingShared(c), at)
			if err == nil {
				pod.ShareAcrossPods(&template, c, rank)
				pod.SharedEngine(&template, c)
			}
			return template, err
		}
		engine, err := b.clique(c, engineClique(c, rank), engines, sharedPlace(c, rank), joined)
		if err != nil {
			return nil, err
		}
		engine.Spec.StartsAfter = []string{server.Name}
		cliques = append(cliques, server, engine)
	}
	return cliques, nil
}

// sharedPlace is the place of the engines of a rank. Each shadow has a leader of its
// own: the one with the same number.
func sharedPlace(c graph.Component, rank int) engine.Group {
	if !c.Multinode() {
		return engine.Group{Position: engine.Alone, Nodes: 1}
	}
	position := engine.Leader
	if rank > 0 {
		position = engine.Worker
	}
	at := place(c, position)
	leader := "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-" + c.LeaderClique() + "-$(GROVE_PCLQ_POD_INDEX).$(GROVE_HEADLESS_SERVICE)"
	at.Addresses.LeaderExec, at.Addresses.LeaderShell = leader, leader
	// A clique is of one rank, whatever its pods are numbered.
	at.Addresses.Rank, at.Addresses.RankExec = strconv.Itoa(rank), true
	at.Addresses.RankTimes = func(n int) string { return strconv.Itoa(n * rank) }
	return at
}

package controller

import (
	"context"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/sshkey"
)

// SSHKey is the key of a namespace by which the nodes of MPI groups reach each
// other, where a graph needs one and there is none. It is random, so it is not
// rendered.
func SSHKey(ctx context.Context, facts observe.Facts, g *graph.Graph, name string) ([]graph.Desired, error) {
	if !g.NeedsSSH() {
		return nil, nil
	}
	exists, err := facts.SecretExists(ctx, g.Namespace, name)
	if err != nil || exists {
		return nil, err
	}
	key, err := sshkey.New(g.Namespace, name)
	if err != nil {
		return nil, err
	}
	return []graph.Desired{key}, nil
}

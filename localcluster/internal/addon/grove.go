package addon

import (
	"fmt"
	"net"
	"strconv"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/controlplane"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/health"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/supervisor"
)

// GroveName is the stand-in for the Grove operator, an applet of this binary.
const GroveName = "grove-standin"

const groveHealthPort = 8082

// GroveHealthAddress is where the stand-in answers whether it is well.
func GroveHealthAddress(c controlplane.Cluster) string {
	return net.JoinHostPort(c.Network().ControlPlane().String(), strconv.Itoa(groveHealthPort))
}

func groveProgram(c controlplane.Cluster) (supervisor.Program, error) {
	if _, err := c.KubeconfigFor(GroveName, c.PKI.Grove); err != nil {
		return supervisor.Program{}, err
	}
	return supervisor.Program{
		Name:  GroveName,
		Args:  []string{"--dir=" + string(c.Dir)},
		Env:   controlplane.Environment(),
		Grace: controlplane.StopGrace,
	}, nil
}

func groveCheck(c controlplane.Cluster) (health.Check, error) {
	return health.HTTP(fmt.Sprintf("http://%s/readyz", GroveHealthAddress(c))), nil
}

func groveGrants() []grant {
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	return []grant{{user: pki.GroveUser, rules: []rule{
		{
			groups: []string{"grove.io"},
			resources: []string{
				"podcliquesets", "podcliquesets/status", "podcliquesets/finalizers",
				"podcliques", "podcliques/status", "podcliques/finalizers",
				"podcliquescalinggroups", "podcliquescalinggroups/status", "podcliquescalinggroups/finalizers",
			},
			verbs: write,
		},
		{groups: []string{""}, resources: []string{"pods", "services"}, verbs: write},
		{groups: []string{"", "events.k8s.io"}, resources: []string{"events"}, verbs: []string{"create", "patch"}},
	}}}
}

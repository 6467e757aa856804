package config

import (
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/render"
	"github.com/dynamo-operator/dynamo-operator/internal/render/pod"
)

// Platform is what the configuration says to rendering. Facts of a cluster and
// a namespace are added where they are known.
func (c Config) Platform() render.Platform {
	return render.Platform{
		Defaults: graph.Defaults{
			Discovery: c.Discovery.Backend,
			Ingress: graph.IngressDefaults{
				Class: c.Ingress.Class, TLSSecret: c.Ingress.TLSSecret,
				HostSuffix: c.Ingress.HostSuffix, Gateway: c.Ingress.Gateway,
			},
		},
		Pod: pod.Platform{
			NATS: c.Endpoints.NATS, Etcd: c.Endpoints.Etcd,
			ModelExpress: c.Endpoints.ModelExpress, Prometheus: c.Endpoints.Prometheus,
			SSHSecret: c.MPI.SSHSecret,
		},
		Roles:                 render.Roles{Planner: c.Roles.Planner, Picker: c.Roles.Picker},
		GroveTerminationDelay: c.Grove.TerminationDelay.Duration,
	}
}

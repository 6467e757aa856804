package graph

import (
	"cmp"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Registration is the place in etcd where the instances of one component say
// that they are there. Two graphs can have one in common: a Dynamo namespace does
// not tell where the Kubernetes namespace ends and the graph's name begins
// (team/a-chat and team-a/chat), and the global one is everybody's.
type Registration struct {
	// Namespace and Graph are those of the Kubernetes object.
	Namespace, Graph string
	// DynamoNamespace and Service are what etcd knows.
	DynamoNamespace, Service string
}

// Key names the place. No component's name has a slash.
func (r Registration) Key() string { return r.DynamoNamespace + "/" + r.Service }

// Unambiguous reports whether no graph of another namespace can have the same
// place.
func (r Registration) Unambiguous() bool {
	return r.DynamoNamespace == r.Namespace+"-"+r.Graph && !strings.Contains(r.Namespace, "-") && !strings.Contains(r.Graph, "-")
}

// Registrations are those of the components that are found by etcd.
func (g *Graph) Registrations() []Registration {
	var all []Registration
	for _, c := range g.Components {
		if c.Discovery == DiscoveryEtcd {
			all = append(all, Registration{Namespace: g.Namespace, Graph: g.Name, DynamoNamespace: c.DynamoNamespace, Service: c.Name})
		}
	}
	return all
}

// RegistrationsOf are where the services of a graph may register, whatever they
// are found by.
func RegistrationsOf(dgd *v1alpha1.DynamoGraphDeployment) []Registration {
	var all []Registration
	for name, s := range dgd.Spec.SortedServices() {
		global := s != nil && s.GlobalDynamoNamespace
		all = append(all, Registration{Namespace: dgd.Namespace, Graph: dgd.Name, DynamoNamespace: DynamoNamespace(dgd.Namespace, dgd.Name, global), Service: name})
	}
	return all
}

// RegistrationOf is where a component may register, whatever it is found by.
func RegistrationOf(dcd *v1alpha1.DynamoComponentDeployment) Registration {
	name := cmp.Or(ParentGraph(dcd), dcd.Name)
	return Registration{
		Namespace: dcd.Namespace, Graph: name,
		DynamoNamespace: DynamoNamespace(dcd.Namespace, name, dcd.Spec.GlobalDynamoNamespace), Service: cmp.Or(dcd.Spec.ServiceName, dcd.Name),
	}
}

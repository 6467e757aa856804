package render

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// Graph renders the children of a DynamoGraphDeployment: what its components
// share, then either one DynamoComponentDeployment a service, from which the
// rest is made, or everything that Grove needs.
func Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, provider workload.Provider, p Platform) ([]graph.Desired, error) {
	wanted := accounts(g, p.Roles)
	wanted = append(wanted, claims(g)...)
	wanted = append(wanted, adapters(g)...)
	wanted = append(wanted, controlled(Discovery(g)...)...)
	wanted = append(wanted, controlled(groupObjects(g)...)...)
	wanted = append(wanted, controlled(networkPolicies(g, p.NetworkPolicy)...)...)
	picker, err := picker(g, p.Capabilities)
	wanted = append(wanted, controlled(picker...)...)
	if provider == workload.ProviderGrove {
		cliques, cliqueErr := cliqueSet(g, p)
		return append(wanted, cliques...), errors.Join(err, cliqueErr)
	}
	for _, c := range g.Components {
		component, componentErr := componentDeployment(dgd, c, g.Engine(), p)
		if componentErr != nil {
			return wanted, errors.Join(err, componentErr)
		}
		wanted = append(wanted, controlled(component)...)
	}
	return wanted, err
}

// controlled wants objects that belong to one owner.
func controlled(objects ...graph.Object) []graph.Desired {
	var wanted []graph.Desired
	for _, o := range objects {
		wanted = append(wanted, graph.Desired{Object: o})
	}
	return wanted
}

// cliqueSet renders a graph for Grove. There are no components in between, so
// their Services belong to the graph.
func cliqueSet(g *graph.Graph, p Platform) ([]graph.Desired, error) {
	g = located(g)
	objects, err := grove.Builder{TerminationDelay: p.GroveTerminationDelay, Queue: p.Queue}.Build(g, pods(p))
	wanted := controlled(objects...)
	for _, c := range g.Components {
		if c.Discovery != graph.DiscoveryKubernetes && c.Role != graph.RoleFrontend && c.Role != graph.RoleEPP && c.Ingress == nil {
			continue // nobody looks for it by name
		}
		routes, routeErr := ingress(c, p.Capabilities)
		err = errors.Join(err, routeErr)
		wanted = append(wanted, controlled(cliqueService(c))...)
		wanted = append(wanted, controlled(routes...)...)
	}
	return append(wanted, modelServices(g.Components)...), err
}

// componentDeployment carries a service over field by field, in the user's own
// words, so that a reader of the component sees what the graph says.
func componentDeployment(dgd *v1alpha1.DynamoGraphDeployment, c graph.Component, engine graph.Engine, p Platform) (*v1alpha1.DynamoComponentDeployment, error) {
	if c.Contract == graph.ContractV1 || conversion.WrittenAs(dgd) == conversion.Beta {
		return betaComponentDeployment(dgd, locate(c), engine, p)
	}
	spec, err := graph.Service(dgd, c.Name, p.Defaults)
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", c.Name, err)
	}
	spec.ServiceName = c.Name
	spec.Annotations = c.Annotations
	if c.Adapted {
		spec.Replicas = new(c.Replicas)
	}
	spec.DynamoNamespace = new(c.DynamoNamespace)
	if c.Role == graph.RolePlanner {
		spec.ExtraPodSpec = withAccount(spec.ExtraPodSpec, pod.PlannerAccount)
	}
	if spec.EPPConfig, err = completePicker(spec.EPPConfig); err != nil {
		return nil, fmt.Errorf("service %s: eppConfig.config: %w", c.Name, err)
	}
	system := systemLabels(c)
	labels := map[string]string{}
	maps.Copy(labels, spec.Labels)
	maps.Copy(labels, system)
	spec.Labels = labels
	return &v1alpha1.DynamoComponentDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: c.ObjectName, Namespace: c.Namespace, Labels: system},
		Spec: v1alpha1.DynamoComponentDeploymentSpec{
			BackendFramework: dgd.Spec.BackendFramework,
			SharedSpec:       spec,
		},
	}, nil
}

// withAccount makes pods run under an account, whatever the user wrote.
func withAccount(users *v1alpha1.ExtraPodSpec, name string) *v1alpha1.ExtraPodSpec {
	extra, spec := v1alpha1.ExtraPodSpec{}, corev1.PodSpec{}
	if users != nil {
		extra = *users
	}
	if extra.PodSpec != nil {
		spec = *extra.PodSpec
	}
	spec.ServiceAccountName = name
	extra.PodSpec = &spec
	return &extra
}

func systemLabels(c graph.Component) map[string]string {
	return map[string]string{
		v1alpha1.LabelGraphName:       c.Graph,
		v1alpha1.LabelComponent:       c.Name,
		v1alpha1.LabelDynamoNamespace: c.DynamoNamespace,
	}
}

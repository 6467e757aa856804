package rbacaudit

import (
	"slices"
	"strings"
)

// Reason says why rights are held that no request in an audit log shows.
type Reason struct {
	Role string
	// Verbs are some, or all if there are none.
	Verbs    []string
	Resource string
	Why      string
}

func (r Reason) covers(right Right) bool {
	if r.Role != right.Role || r.Resource != right.Resource {
		return false
	}
	return len(r.Verbs) == 0 || slices.Contains(r.Verbs, right.Verb)
}

func (r Reason) String() string {
	return strings.TrimSpace(r.Role + ": " + strings.Join(r.Verbs, ",") + " " + r.Resource)
}

// Words of reasons that hold more than once.
const (
	grantedOn = "granted on to the pods of graphs: Kubernetes lets nobody grant what they lack"
	binding   = "no request: the API server asks for it when a binding names the role"
	owning    = "no request: asked on clusters where only those may name an owner who may set its finalizers (OwnerReferencesPermissionEnforcement)"
	claiming  = "no request: asked by the policy that guards the Lease of a namespace"
	restoring = "no request: the Lease is shipped, and made again if somebody deletes it"
	finding   = "for Dynamo's own runtime in the image, which publishes and finds workers; the mock engine in its place does so by apply and watch alone"
	planning  = "for Dynamo's planner in the image, which scales graphs; ours, in its place here, needs less"
	picking   = "for Dynamo's endpoint picker in the image, which follows its pool; the mock engine in its place picks nothing"
	profiling = "for profilers of others in the image of a request, which try graphs and follow their pods in their own way; ours needs less"
)

// Held are all rights that are held for another reason than their use.
var Held = slices.Concat(
	ofOperators,
	held("discovery", finding, "endpoints", "pods", "endpointslices.discovery.k8s.io", "dynamoworkermetadatas.nvidia.com"),
	held("planner", planning, "dynamocomponentdeployments.nvidia.com", "dynamographdeployments.nvidia.com",
		"dynamographdeploymentscalingadapters.nvidia.com", "dynamographdeploymentscalingadapters/scale.nvidia.com"),
	held("planner", finding, "endpoints", "endpointslices.discovery.k8s.io", "dynamoworkermetadatas.nvidia.com"),
	held("epp", picking, "pods",
		"inferencepools.inference.networking.k8s.io", "inferencepools.inference.networking.x-k8s.io",
		"inferenceobjectives.inference.networking.k8s.io", "inferenceobjectives.inference.networking.x-k8s.io",
		"inferencemodelrewrites.inference.networking.k8s.io", "inferencemodelrewrites.inference.networking.x-k8s.io"),
	held("epp", finding, "endpoints", "endpointslices.discovery.k8s.io", "dynamoworkermetadatas.nvidia.com"),
	held("profiler", profiling, "dynamographdeployments.nvidia.com", "dynamographdeploymentrequests.nvidia.com", "configmaps", "pods", "pods/log"),
)

// held are reasons for whatever of some resources is not used.
func held(role, why string, resources ...string) []Reason {
	var reasons []Reason
	for _, resource := range resources {
		reasons = append(reasons, Reason{Role: role, Resource: resource, Why: why})
	}
	return reasons
}

// ofOperators is the strict part: operators are ours, so each verb counts.
var ofOperators = []Reason{
	{Role: "manager", Resource: "endpoints", Why: grantedOn},
	{Role: "manager", Verbs: []string{"get"}, Resource: "endpointslices.discovery.k8s.io", Why: grantedOn},
	{Role: "manager", Verbs: []string{"get"}, Resource: "pods", Why: grantedOn},
	{Role: "manager", Resource: "dynamoworkermetadatas.nvidia.com", Why: grantedOn},
	{Role: "manager", Resource: "clusterroles.rbac.authorization.k8s.io", Verbs: []string{"bind"}, Why: binding},
	{Role: "manager", Resource: "dynamocomponentdeployments/finalizers.nvidia.com", Why: owning},
	{Role: "manager", Resource: "dynamographdeployments/finalizers.nvidia.com", Why: owning},
	{Role: "manager", Resource: "dynamographdeploymentrequests/finalizers.nvidia.com", Why: owning},
	{Role: "namespace-scope", Resource: "namespacescopes.nvidia.com", Why: claiming},
	{Role: "cluster-scope", Verbs: []string{"create"}, Resource: "leases.coordination.k8s.io", Why: restoring},
}

package rights

import "strings"

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
	for _, verb := range r.Verbs {
		if verb == right.Verb {
			return true
		}
	}
	return len(r.Verbs) == 0
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
	theirs    = "for programs of the Dynamo runtime, which the mock engine stands in for and does not use"
)

// Held are all rights that are held for another reason than their use.
var Held = []Reason{
	{Role: "manager", Resource: "endpoints", Why: grantedOn},
	{Role: "manager", Verbs: []string{"get"}, Resource: "endpointslices.discovery.k8s.io", Why: grantedOn},
	{Role: "manager", Resource: "dynamoworkermetadatas.nvidia.com", Why: grantedOn},
	{Role: "manager", Resource: "clusterroles.rbac.authorization.k8s.io", Verbs: []string{"bind"}, Why: binding},
	{Role: "manager", Resource: "dynamocomponentdeployments/finalizers.nvidia.com", Why: owning},
	{Role: "manager", Resource: "dynamographdeployments/finalizers.nvidia.com", Why: owning},
	{Role: "manager", Resource: "dynamographdeploymentrequests/finalizers.nvidia.com", Why: owning},
	{Role: "namespace-scope", Resource: "namespacescopes.nvidia.com", Why: claiming},
}

package requestplan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// Guards of what requests make in other namespaces, and of what they make it from.
const (
	// GuardConsent asks the target for its consent.
	GuardConsent guard.Guard = "request-consent"
	// GuardPolicy stops work for other namespaces while nobody judges who asks.
	GuardPolicy guard.Guard = "request-policy"
	// GuardAccount keeps graphs from elsewhere off the accounts of their target.
	GuardAccount guard.Guard = "request-account"
	// GuardOutput takes nothing from a profiler that its pod does not prove.
	GuardOutput guard.Guard = "request-output"
)

// Right is something that may be done in a namespace.
type Right struct{ Verb, Group, Resource string }

func (r Right) String() string {
	if r.Group == "" {
		return r.Verb + " " + r.Resource
	}
	return r.Verb + " " + r.Resource + "." + r.Group
}

// Rights are those that what a request makes elsewhere takes: graphs, and the
// ConfigMaps that they mount. Applying takes both verbs.
var (
	graphRights = []Right{
		{"create", v1alpha1.GroupName, "dynamographdeployments"}, {"patch", v1alpha1.GroupName, "dynamographdeployments"},
	}
	extraRights = []Right{{"create", "", "configmaps"}, {"patch", "", "configmaps"}}
	Rights      = slices.Concat(graphRights, extraRights)
)

// Grant is a ServiceAccount that allows requests from the request's namespace.
type Grant struct {
	Account string
	// Lacks are those of Rights that the account does not have itself.
	Lacks []Right
}

// Consent is what the namespace of a graph says to requests of another, at the
// moment of the reconcile.
type Consent struct {
	// Grants are sorted by account.
	Grants []Grant
	// Policy judges who may ask.
	Policy snapshot.PolicyState
}

// consentAgain is how often consent is asked for again: it is not watched.
const consentAgain = absentAgain

// permit says why nothing may be made where the graph of a request goes, or which
// account allows it. In the request's own namespace none has to: there the
// admission policy has asked whether the author may.
func (p Policy) permit(r *v1alpha1.DynamoGraphDeploymentRequest, spec v1alpha1.DynamoGraphDeploymentRequestSpec, c *Consent, rights []Right) (account string, err *fault.Fault) {
	target := GraphKey(r, spec).Namespace
	if target == r.Namespace {
		return "", nil
	}
	deny := func(reason, format string, args ...any) (string, *fault.Fault) {
		return "", fault.New(fault.Waiting, reason, format, args...).Again(consentAgain)
	}
	if err := p.Scope.Target(r.Namespace, target); err != nil {
		return deny(v1alpha1.ReasonNamespaceReserved, "graphs are not made in namespace %s: %v", target, err)
	}
	if c == nil {
		c = &Consent{}
	}
	if !c.Policy.InForce() && !GuardPolicy.Off() {
		return deny(v1alpha1.ReasonPolicyNotInForce,
			"nothing is made in other namespaces while nobody judges who asks for it: %s; install the operator's policies again", strings.Join(c.Policy.Problems, ", "))
	}
	if len(c.Grants) == 0 && !GuardConsent.Off() {
		return deny(v1alpha1.ReasonNamespaceNotGranted,
			"no ServiceAccount of namespace %[1]s allows requests from namespace %[2]s; whoever administers %[1]s does so with: kubectl annotate serviceaccount NAME --namespace %[1]s %[3]s=%[2]s",
			target, r.Namespace, v1alpha1.AnnotationAllowRequestsFrom)
	}
	var short []string
	for _, g := range c.Grants {
		lacks := slices.DeleteFunc(slices.Clone(rights), func(right Right) bool { return !slices.Contains(g.Lacks, right) })
		if len(lacks) == 0 {
			return g.Account, nil
		}
		short = append(short, fmt.Sprintf("ServiceAccount %s/%s allows requests from namespace %s, but may not itself %s", target, g.Account, r.Namespace, join(lacks)))
	}
	if GuardConsent.Off() {
		return "", nil
	}
	return deny(v1alpha1.ReasonGrantInsufficient, "%s; bind it to a Role that may", strings.Join(short, "; "))
}

func join(rights []Right) string {
	var words []string
	for _, r := range rights {
		words = append(words, r.String())
	}
	return strings.Join(words, ", ")
}

// Target is the namespace that the graph of a request goes to: the one that was
// accepted, and before that the one that is asked for.
func Target(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight) string {
	if s.Record != nil {
		return GraphKey(r, s.Record.Spec).Namespace
	}
	return GraphKey(r, r.Spec).Namespace
}

// Asks reports whether the next step may be to make something in another
// namespace, or to begin what ends there.
func Asks(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight) bool {
	if Target(r, s) == r.Namespace || r.Status.State == v1alpha1.RequestStateFailed {
		return false
	}
	made := r.Status.Deployment != nil && r.Status.Deployment.Created
	return !made && (s.Record == nil || HasGraph(r) || Finished(s.Job))
}

// wait puts off what a step wanted to write elsewhere.
func (s Step) wait(kind string, f *fault.Fault) Step {
	s.Wants, s.After = Nothing, f.After
	s.say(Finding{Type: kind, Reason: f.Reason, Message: f.Message})
	return s
}

// intrudes finds a service of a graph from another namespace that would run under
// an account of the target which neither consents nor is one that the operator
// makes.
func (p Policy) intrudes(dgd *v1alpha1.DynamoGraphDeployment, from, consenting string) error {
	if dgd.Namespace == from || GuardAccount.Off() {
		return nil
	}
	for name, service := range dgd.Spec.SortedServices() {
		if service == nil || service.ExtraPodSpec == nil || service.ExtraPodSpec.PodSpec == nil {
			continue
		}
		for _, account := range []string{service.ExtraPodSpec.ServiceAccountName, service.ExtraPodSpec.DeprecatedServiceAccount} {
			if account != "" && account != consenting && !slices.Contains(p.Accounts, account) {
				return fmt.Errorf("service %s names ServiceAccount %s of namespace %s; a graph from another namespace runs as %s, which allows it, or as an account that the operator makes",
					name, account, dgd.Namespace, consenting)
			}
		}
	}
	return nil
}

// valid judges a generated graph by the rules for one that a user writes.
func (p Policy) valid(dgd *v1alpha1.DynamoGraphDeployment) error {
	return validation.Fault(validation.Create(dgd, p.Scope).Problems)
}

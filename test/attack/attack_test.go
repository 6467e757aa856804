package attack

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/retryclient"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// attack is something that a tenant tries.
type attack struct {
	// name says what happens if it works. SECURITY.md refers to it.
	name string
	// finding of the audit that it comes from, if any.
	finding string
	// heldBy are the guards that it is stopped by. All of them are off in the bare
	// world; where one is there, the attack must work.
	heldBy []barrier
	// webhooksDown makes it while no webhook answers.
	webhooksDown bool
	// unbound makes it while nothing binds the policy of requests: somebody has
	// removed the binding, or has installed without it.
	unbound bool
	// beta writes what has two versions as v1beta1.
	beta bool
	// alphaOnly says why it cannot be written as v1beta1, where it cannot.
	alphaOnly string
	// try makes it and says what came of it. What must work for the attack to be
	// one, such as the tenant's own rights, ends the test if it does not.
	try func(*scene) outcome
}

// outcome is whether an attack got through, and by what this was seen.
type outcome struct {
	through  bool
	evidence string
}

func held(format string, args ...any) outcome {
	return outcome{false, fmt.Sprintf(format, args...)}
}

func gotThrough(format string, args ...any) outcome {
	return outcome{true, fmt.Sprintf(format, args...)}
}

// barrier is one thing that holds an attack.
type barrier struct{ kind, name string }

// Kinds of barriers. Those of Kubernetes and of the design cannot be taken away.
const (
	inCode     = "guard"        // a check of the operator's, see internal/core/guard
	inPolicy   = "policy"       // a ValidatingAdmissionPolicy
	inRights   = "RBAC"         // the tenant's role does not have the right
	inPods     = "Pod Security" // the level that a namespace enforces
	inSchema   = "schema"       // a rule of a kind's definition
	inPlatform = "Kubernetes"   // what the API server does for everybody
	inDesign   = "design"       // there is nothing that would do it
)

func code(g guard.Guard) barrier   { return barrier{inCode, string(g)} }
func policy(name string) barrier   { return barrier{inPolicy, name} }
func platform(what string) barrier { return barrier{inPlatform, what} }
func design(reason string) barrier { return barrier{inDesign, reason} }
func (b barrier) String() string   { return strings.TrimSuffix(b.kind+" "+b.name, " ") }
func (a attack) by(kind string) bool {
	return slices.ContainsFunc(a.heldBy, func(b barrier) bool { return b.kind == kind })
}

var (
	rights      = barrier{kind: inRights}
	podSecurity = barrier{kind: inPods}
	schema      = barrier{kind: inSchema}
)

// removable tells whether the attack can be made without its guards.
func (a attack) removable() bool { return !a.by(inPlatform) && !a.by(inDesign) }

// attacks are all there are; each file adds its own.
var attacks []attack

// add is called while the package is initialised.
func add(more ...attack) bool {
	attacks = append(attacks, more...)
	return true
}

// tally is what came of the attacks.
var tally struct {
	sync.Mutex
	held, through, fixed int
	lines                []string
}

// TestAttacks makes every attack, in both worlds: as shipped it must lead
// nowhere, without its guards it must work.
func TestAttacks(t *testing.T) {
	worlds(t)
	t.Run("while the operator is up", func(t *testing.T) {
		for _, a := range attacks {
			if !a.webhooksDown && !a.unbound {
				t.Run(a.name, func(t *testing.T) { t.Parallel(); a.both(t) })
			}
		}
	})
	t.Run("written as v1beta1", attacksInBeta)
	t.Run("while no webhook answers", func(t *testing.T) {
		shipped.withoutWebhooks(t, func() {
			t.Run("all", func(t *testing.T) {
				for _, a := range attacks {
					if a.webhooksDown {
						t.Run(a.name, func(t *testing.T) { t.Parallel(); a.both(t) })
					}
				}
			})
		})
	})
	t.Run("while the policy of requests is not bound", func(t *testing.T) {
		shipped.withoutBinding(t, requestPolicy)
		t.Run("all", func(t *testing.T) {
			for _, a := range attacks {
				if a.unbound {
					t.Run(a.name, func(t *testing.T) { t.Parallel(); a.both(t) })
				}
			}
		})
	})
	slices.Sort(tally.lines)
	t.Log("\n" + strings.Join(tally.lines, "\n"))
	summary.Line(t, "attacks: %d made, %d held as shipped; without its guard each of %d got through, the other %d are held by Kubernetes or by what is not there",
		tally.held, tally.held, tally.through, tally.fixed)
}

// both makes an attack in the two worlds, side by side.
func (a attack) both(t *testing.T) {
	t.Helper()
	t.Run("as shipped", func(t *testing.T) {
		t.Parallel()
		got := a.try(newScene(t, shipped, a))
		if got.through {
			t.Errorf("the attack got through: %s", got.evidence)
			return
		}
		t.Logf("held: %s", got.evidence)
		tally.Lock()
		defer tally.Unlock()
		tally.held++
		tally.lines = append(tally.lines, fmt.Sprintf("%-4s %-90s %v", a.finding, a.name, a.heldBy))
		if !a.removable() {
			tally.fixed++
		}
	})
	if !a.removable() {
		return
	}
	t.Run("without its guard", func(t *testing.T) {
		t.Parallel()
		got := a.try(newScene(t, bare, a))
		if !got.through {
			t.Errorf("the attack does not work even without its guard, so it shows nothing: %s", got.evidence)
			return
		}
		t.Logf("got through: %s", got.evidence)
		tally.Lock()
		defer tally.Unlock()
		tally.through++
	})
}

// scene is where an attack takes place.
type scene struct {
	*testing.T
	*world
	ctx    context.Context
	attack attack
	spaces int
}

func newScene(t *testing.T, w *world, a attack) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	return &scene{T: t, world: w, ctx: ctx, attack: a}
}

// refused is the outcome of a write that ought to be denied: an error of another
// kind than a refusal would prove nothing, and ends the test.
func (s *scene) refused(err error) outcome {
	s.Helper()
	switch {
	case err == nil:
		return gotThrough("the API server accepts it")
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return held("%v", err)
	default:
		s.Fatalf("neither accepted nor refused: %v", err)
		return outcome{}
	}
}

// namespace makes one. Its labels hold for a guarded world only: they are a
// guard, Pod Security's.
func (s *scene) namespace(labels map[string]string) string {
	s.Helper()
	sum := sha1.Sum([]byte(s.Name()))
	s.spaces++
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t-%s-%d", hex.EncodeToString(sum[:4]), s.spaces)}}
	if !s.bare {
		ns.Labels = labels
	}
	s.create(ns)
	s.Cleanup(func() {
		if err := s.Client.Delete(context.Background(), ns); err != nil {
			s.Errorf("delete namespace: %v", err)
		}
	})
	return ns.Name
}

// create makes an object as the administrator.
func (s *scene) create(o client.Object) {
	s.Helper()
	if err := s.Client.Create(s.ctx, o); err != nil {
		s.Fatalf("create %T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err)
	}
}

// tenant is somebody who has a role in a namespace, and nothing anywhere else:
// a ServiceAccount and its token. Where rights are the guard, the bare world
// gives them all.
func (s *scene) tenant(ns string, roles ...string) client.WithWatch {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "mallory-"}}
	s.create(account)
	for _, role := range roles {
		s.bind(ns, role, account)
	}
	return s.as(account)
}

// everywhere is a tenant who has a role in every namespace.
func (s *scene) everywhere(ns, role string) client.WithWatch {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "mallory-"}}
	s.create(account)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "mallory-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subjectOf(account)},
	}
	s.create(binding)
	s.Cleanup(func() { s.Client.Delete(context.Background(), binding) })
	s.may(account, authorizationv1.ResourceAttributes{Group: "nvidia.com", Resource: "dynamographdeployments", Verb: "create"})
	return s.as(account)
}

// as is a client with nothing but an account's token. Where rights are what holds
// the attack, the bare world gives the account all of them.
func (s *scene) as(account *corev1.ServiceAccount) client.WithWatch {
	s.Helper()
	if s.bare && s.attack.by(inRights) {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "mallory-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{subjectOf(account)},
		}
		s.create(binding)
		s.Cleanup(func() { s.Client.Delete(context.Background(), binding) })
		s.may(account, authorizationv1.ResourceAttributes{Group: "*", Resource: "*", Verb: "*"})
	}
	return s.withToken(account, nil)
}

// withToken is a client with an account's token, and nothing else. One that is
// bound to a pod tells whose it is.
func (s *scene) withToken(account *corev1.ServiceAccount, bound *authenticationv1.BoundObjectReference) client.WithWatch {
	s.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}
	if err := s.Client.SubResource("token").Create(s.ctx, account, request); err != nil {
		s.Fatal(err)
	}
	config := rest.AnonymousClientConfig(s.Config)
	config.BearerToken, config.QPS = request.Status.Token, -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New(), Mapper: s.Client.RESTMapper()})
	if err != nil {
		s.Fatal(err)
	}
	return s.versioned(retryclient.Client(c))
}

func subjectOf(account *corev1.ServiceAccount) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
}

// bind gives an account a ClusterRole in a namespace, and waits until the API
// server knows: what it refuses before that would count as held.
func (s *scene) bind(ns, role string, account *corev1.ServiceAccount) {
	s.Helper()
	s.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "b-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subjectOf(account)},
	})
	right := authorizationv1.ResourceAttributes{Namespace: ns, Group: "nvidia.com", Resource: "dynamographdeployments", Verb: "create"}
	switch role {
	case "admin", "edit": // ours are added to Kubernetes' own
	case "view":
		right.Verb = "list"
	default:
		found := &rbacv1.ClusterRole{}
		if err := s.Client.Get(s.ctx, types.NamespacedName{Name: role}, found); err != nil {
			s.Fatal(err)
		}
		rule := found.Rules[slices.IndexFunc(found.Rules, func(r rbacv1.PolicyRule) bool { return len(r.Resources) > 0 && len(r.ResourceNames) == 0 })]
		right.Group, right.Resource, right.Verb = rule.APIGroups[0], rule.Resources[0], rule.Verbs[0]
	}
	s.may(account, right)
}

// may waits until an account has a right.
func (s *scene) may(account *corev1.ServiceAccount, right authorizationv1.ResourceAttributes) {
	s.Helper()
	s.eventually(fmt.Sprintf("%s to be granted %+v", account.Name, right), func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + account.Namespace + ":" + account.Name, ResourceAttributes: &right,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
		}}
		if err := s.Client.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return errors.New("not yet")
		}
		return nil
	})
}

// role makes a ClusterRole that nobody has: what a tenant may have been given
// beside their role for a namespace.
func (s *scene) role(rules ...rbacv1.PolicyRule) string {
	s.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "extra-"}, Rules: rules}
	s.create(role)
	s.Cleanup(func() { s.Client.Delete(context.Background(), role) })
	return role.Name
}

func allOf(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"*"}}
}

func (s *scene) eventually(what string, try func(context.Context) error) {
	s.Helper()
	if err := s.Eventually(s.ctx, what, try); err != nil {
		s.Fatal(err)
	}
}

// either waits for one of two ends: what the attack is after, or what shows that
// the operator has seen it and does not do it. The first to say nil wins; what the
// attack is after is looked at once more after the other.
func (s *scene) either(what string, through, held func(context.Context) error) bool {
	s.Helper()
	won := false
	s.eventually(what, func(ctx context.Context) error {
		seen := held(ctx)
		got := through(ctx)
		won = got == nil
		if seen == nil || won {
			return nil
		}
		return errors.Join(got, seen)
	})
	return won
}

// idle is a service that does nothing, and a graph of one.
const (
	image = `extraPodSpec: {mainContainer: {image: "dynamo-mocker:dev", args: ["sleep infinity"]}}`
	idle  = `{services: {a: {` + image + `}}}`
)

// exists is nil if there is such an object.
func (s *scene) exists(o client.Object) func(context.Context) error {
	return func(ctx context.Context) error { return s.Client.Get(ctx, client.ObjectKeyFromObject(o), o) }
}

// ready waits for a graph.
func (s *scene) ready(ns, name string) {
	s.Helper()
	s.eventually("graph "+ns+"/"+name+" to be ready", s.graphReady(ns, name))
}

func (s *scene) graphReady(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
			return err
		}
		if dgd.Status.ObservedGeneration != dgd.Generation || !conditions.IsStatusConditionTrue(dgd.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("generation %d of %d, %v", dgd.Status.ObservedGeneration, dgd.Generation, dgd.Status.Conditions)
		}
		return nil
	}
}

// laterOnes shows that the operator had its chance: a graph that is made now, in
// the same namespace, is ready. Work of one namespace is done in its order, so
// what was written before has been seen.
func (s *scene) laterOnes(ns string) func(context.Context) error {
	s.Helper()
	const name = "later"
	made := false
	ready := s.graphReady(ns, name)
	return func(ctx context.Context) error {
		if !made {
			if err := s.Client.Create(ctx, graphOf(ns, name, idle)); err != nil {
				return err
			}
			made = true
		}
		return ready(ctx)
	}
}

package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// scope is what the operator may write to, and when: as the leader of its replicas,
// as the one operator for the cluster or for its namespaces.
type scope struct {
	config   config.Config
	writer   *namespacescope.Writer
	election *namespacescope.Election // nil without replicas
	lock     *resourcelock.LeaseLock
	claims   *namespacescope.Claims
	view     *namespacescope.View // nil for an operator of single namespaces
	// wake has all objects of a kind in a namespace looked at, for each controller.
	mu   sync.Mutex
	wake []func(ctx context.Context, namespace string)
}

// newScope makes the Leases, which are written past the writer.
func newScope(cfg config.Config, cluster *rest.Config) (*scope, error) {
	s := &scope{config: cfg, writer: &namespacescope.Writer{}, claims: &namespacescope.Claims{}}
	electedBy := ""
	if uid := os.Getenv("POD_UID"); uid != "" {
		electedBy = "pod " + uid // its containers of one name run one after the other
	}
	if cfg.Leader.Enabled {
		if err := s.elect(cluster); err != nil {
			return nil, err
		}
		electedBy = "lease " + s.lock.Describe()
	}
	if !cfg.Tenancy.Claim {
		return s, nil
	}
	direct, err := client.New(cluster, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	identity, err := newIdentity(cfg, electedBy)
	if err != nil {
		return nil, err
	}
	if s.claims.Holders = s.holders(direct, identity); len(s.claims.Holders) > 0 {
		s.writer.Permits = append(s.writer.Permits, s.claims.Left)
		s.writer.Terms = append(s.writer.Terms, s.claims.Term)
	}
	if cfg.ClusterWide() {
		s.view = &namespacescope.View{Direct: direct, Clock: guard.Clock()}
		s.writer.Permits = append(s.writer.Permits, s.view.Left)
	}
	return s, nil
}

// elect makes the Lease of the leader election.
func (s *scope) elect(cluster *rest.Config) error {
	leader := s.config.Leader
	lock, err := leaderelection.NewResourceLock(cluster, nobody{}, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: leader.ID, LeaderElectionNamespace: leader.Namespace, RenewDeadline: leader.RenewDeadline.Duration,
	})
	if err != nil {
		return fmt.Errorf("set up leader election: %w", err)
	}
	lease, ok := lock.(*resourcelock.LeaseLock)
	if !ok {
		return fmt.Errorf("leader election is by a %T, want a Lease", lock)
	}
	term := &namespacescope.Term{Lease: lock.Describe(), Deadline: leader.RenewDeadline.Duration, Clock: clock.RealClock{}}
	s.lock, s.election = lease, &namespacescope.Election{Interface: lock, Term: term, Close: s.close}
	s.writer.Permits = append(s.writer.Permits, func(context.Context, string) (time.Duration, error) { return term.Left() })
	s.writer.Terms = append(s.writer.Terms, func(string) context.Context { return term.Context() })
	return nil
}

// nobody records no events: the manager does, once it is there.
type nobody struct{}

func (nobody) GetEventRecorderFor(string) record.EventRecorder { return nil }
func (nobody) GetEventRecorder(string) recorder.EventRecorder  { return nil }

// newIdentity is who we are on the Leases.
func newIdentity(cfg config.Config, electedBy string) (namespacescope.Identity, error) {
	if namespacescope.GuardIdentity.Off() {
		return namespacescope.Identity{Holder: "namespace-restricted-operator-" + version.Short()}, nil
	}
	name := cfg.Webhook.Pod
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return namespacescope.Identity{}, fmt.Errorf("name the holder of Leases: %w", err)
		}
		name = host
	}
	return namespacescope.NewIdentity(config.OwnNamespace(), name, electedBy), nil
}

// holders are one for each namespace, or one for the cluster.
func (s *scope) holders(direct client.Client, identity namespacescope.Identity) map[string]*namespacescope.Holder {
	t := s.config.Tenancy
	times := namespacescope.Times{Duration: t.Duration.Duration, Renew: t.Renew.Duration, Retry: min(t.Renew.Duration, 2*time.Second)}
	holder := func(namespace string, lease types.NamespacedName, times namespacescope.Times) *namespacescope.Holder {
		return &namespacescope.Holder{
			Direct: direct, Lease: lease, Identity: identity, Times: times, Clock: guard.Clock(),
			Begin: func() { s.wakeAll(context.Background(), namespace) },
		}
	}
	all := map[string]*namespacescope.Holder{}
	if s.config.ClusterWide() {
		if !namespacescope.GuardCluster.Off() {
			all[""] = holder("", types.NamespacedName{Namespace: t.ClusterNamespace, Name: namespacescope.ClusterLeaseName}, times)
		}
		return all
	}
	times.HandOver = namespacescope.HandOver
	for _, namespace := range s.config.Namespaces {
		all[namespace] = holder(namespace, types.NamespacedName{Namespace: namespace, Name: namespacescope.LeaseName}, times)
	}
	return all
}

// report tells of the scope: by events about the election and by readiness.
func (s *scope) report(mgr manager.Manager) {
	if s.lock != nil {
		s.lock.LockConfig.EventRecorder = mgr.GetEventRecorderFor(s.lock.Identity()) //nolint:staticcheck // the election knows no other
	}
}

// bound ends passes that are still under way a while after the operator was told to
// end. Until then only a lost Lease ends them.
func (s *scope) bound(work context.Context, grace time.Duration) {
	late, end := context.WithCancelCause(context.Background())
	context.AfterFunc(work, func() {
		time.AfterFunc(grace, func() { end(fmt.Errorf("the operator ends and has waited %s for its passes", grace)) })
	})
	s.writer.Terms = append(s.writer.Terms, func(string) context.Context { return late })
}

// close lets nothing be written any more.
func (s *scope) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, config.ReleaseTimeout)
	defer cancel()
	return s.writer.Close(ctx)
}

// release gives the Leases back when all work has ended, so that others can go on at
// once. If it has not they wait.
func (s *scope) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.ReleaseTimeout)
	defer cancel()
	if err := s.writer.Close(ctx); err != nil {
		return err
	}
	return s.claims.Release(ctx)
}

// addTenancy holds the operator's Leases.
func addTenancy(_ context.Context, p *deps) error {
	if len(p.scope.claims.Holders) == 0 {
		return nil
	}
	err := p.AddReadyzCheck("scope", func(*http.Request) error { return p.scope.claims.Idle() })
	return errors.Join(err, p.Add(p.scope.claims))
}

// gate has a reconciler of a kind work only on what is ours to write.
func (p *deps) gate(kind client.Object, next reconcile.Reconciler) reconcile.Reconciler {
	return &namespacescope.Gate{
		Client: p.GetClient(), Writer: p.scope.writer, View: p.scope.view, Covers: p.config.Covers, Clock: guard.Clock(), Next: next,
		Kind: func() (client.Object, *[]metav1.Condition) {
			object := kind.DeepCopyObject().(client.Object)
			return object, conditionsOf(object)
		},
	}
}

// followScope wakes the objects of a kind whose writer changes.
func (p *deps) followScope(kind client.Object, b *builder.Builder) *builder.Builder {
	list := p.listOf(kind)
	b = b.WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		p.scope.onWake(func(ctx context.Context, namespace string) {
			objects, err := objectsOf(ctx, p.GetClient(), list, client.InNamespace(namespace))
			if err != nil {
				p.GetLogger().Error(err, "cannot wake objects", "kind", nameOf(kind), "namespace", namespace)
			}
			for _, object := range objects {
				later(queue, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
		})
		return nil
	}))
	if p.scope.view == nil {
		return b
	}
	return b.Watches(&coordinationv1.Lease{}, sameNamespace(p.GetClient(), list), builder.WithPredicates(p.scope.changesHands()))
}

// later queues an object as the first list does: behind what users just did.
func later(queue workqueue.TypedRateLimitingInterface[reconcile.Request], request reconcile.Request) {
	if q, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, request)
		return
	}
	queue.Add(request)
}

// listOf is an empty list of a kind.
func (p *deps) listOf(kind client.Object) client.ObjectList {
	gvk, err := apiutil.GVKForObject(kind, p.GetScheme())
	if err == nil {
		gvk.Kind += "List"
		if list, err := p.GetScheme().New(gvk); err == nil {
			return list.(client.ObjectList)
		}
	}
	panic(fmt.Sprintf("%T has no list in the scheme: %v", kind, err)) // a mistake in the program
}

// changesHands lets Leases through that are another's from now on. What is known of
// them is noted first, so that who is woken finds it.
func (s *scope) changesHands() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			s.view.Observe(e.Object.(*coordinationv1.Lease))
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
			s.view.Observe(is)
			return namespacescope.Read(is).Follows(namespacescope.Read(was))
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			s.view.Forget(e.Object.(*coordinationv1.Lease))
			return true
		},
	}
}

func (s *scope) onWake(wake func(ctx context.Context, namespace string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = append(s.wake, wake)
}

// wakeAll has everything in a namespace looked at; everywhere if it is empty.
func (s *scope) wakeAll(ctx context.Context, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wake := range s.wake {
		wake(ctx, namespace)
	}
}

// claimStore holds the Leases of tenancy alone: nodes have one each.
func claimStore() cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, namespacescope.LeaseName)}
}

// conditionsOf are the conditions of an object of ours; nil if its kind has none.
func conditionsOf(object client.Object) *[]metav1.Condition {
	switch o := object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		return &o.Status.Conditions
	case *v1alpha1.DynamoComponentDeployment:
		return &o.Status.Conditions
	case *v1alpha1.DynamoModel:
		return &o.Status.Conditions
	case *v1alpha1.DynamoGraphDeploymentRequest:
		return &o.Status.Conditions
	case *v1alpha1.DynamoGraphDeploymentScalingAdapter:
		return &o.Status.Conditions
	default:
		return nil
	}
}

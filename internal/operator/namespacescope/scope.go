package namespacescope

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// Scope is what the operator may write to, and when: as the leader of its replicas,
// as the one operator for the cluster or for its namespaces.
type Scope struct {
	config   config.Config
	Writer   *Writer
	Election *Election // nil without replicas
	lock     *resourcelock.LeaseLock
	claims   *Claims
	View     *View // nil for an operator of single namespaces
	// wake has all objects of a kind in a namespace looked at, for each controller.
	mu   sync.Mutex
	wake []func(ctx context.Context, namespace string)
}

// NewScope makes the Leases, which are written past the writer.
func NewScope(cfg config.Config, cluster *rest.Config) (*Scope, error) {
	// The library limits the time of requests for Leases in what it is given.
	cluster = rest.CopyConfig(cluster)
	s := &Scope{config: cfg, Writer: &Writer{}, claims: &Claims{}}
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
		s.Writer.Permits = append(s.Writer.Permits, s.claims.Left)
		s.Writer.Terms = append(s.Writer.Terms, s.claims.Term)
	}
	if cfg.ClusterWide() {
		s.View = &View{Direct: direct, Clock: guard.Clock()}
		s.Writer.Permits = append(s.Writer.Permits, s.View.Left)
	}
	return s, nil
}

// elect makes the Lease of the leader election.
func (s *Scope) elect(cluster *rest.Config) error {
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
	term := &Term{Lease: lock.Describe(), Deadline: leader.RenewDeadline.Duration, Clock: clock.RealClock{}}
	s.lock, s.Election = lease, &Election{Interface: lock, Term: term, Close: s.close}
	s.Writer.Permits = append(s.Writer.Permits, func(context.Context, string) (time.Duration, error) { return term.Left() })
	s.Writer.Terms = append(s.Writer.Terms, func(string) context.Context { return term.Context() })
	return nil
}

// nobody records no events: the manager does, once it is there.
type nobody struct{}

func (nobody) GetEventRecorderFor(string) record.EventRecorder { return nil }
func (nobody) GetEventRecorder(string) recorder.EventRecorder  { return nil }

// newIdentity is who we are on the Leases.
func newIdentity(cfg config.Config, electedBy string) (Identity, error) {
	if GuardIdentity.Off() {
		return Identity{Holder: "namespace-restricted-operator-" + version.Short()}, nil
	}
	name := cfg.Webhook.Pod
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return Identity{}, fmt.Errorf("name the holder of Leases: %w", err)
		}
		name = host
	}
	return NewIdentity(config.OwnNamespace(), name, electedBy), nil
}

// holders are one for each namespace, or one for the cluster.
func (s *Scope) holders(direct client.Client, identity Identity) map[string]*Holder {
	t := s.config.Tenancy
	times := Times{Duration: t.Duration.Duration, Renew: t.Renew.Duration, Retry: min(t.Renew.Duration, 2*time.Second)}
	holder := func(namespace string, lease types.NamespacedName, times Times) *Holder {
		return &Holder{
			Direct: direct, Lease: lease, Identity: identity, Times: times, Clock: guard.Clock(),
			Begin: func() { s.wakeAll(context.Background(), namespace) },
		}
	}
	all := map[string]*Holder{}
	if s.config.ClusterWide() {
		if !GuardCluster.Off() {
			all[""] = holder("", types.NamespacedName{Namespace: t.ClusterNamespace, Name: ClusterLeaseName}, times)
		}
		return all
	}
	times.HandOver = HandOver
	for _, namespace := range s.config.Namespaces {
		all[namespace] = holder(namespace, types.NamespacedName{Namespace: namespace, Name: LeaseName}, times)
	}
	return all
}

// Report tells of the scope: by events about the election and by readiness.
func (s *Scope) Report(mgr manager.Manager) {
	if s.lock != nil {
		s.lock.LockConfig.EventRecorder = mgr.GetEventRecorderFor(s.lock.Identity()) //nolint:staticcheck // the election knows no other
	}
}

// Bound ends reconciles that are still under way a while after the operator was told to
// end. Until then only a lost Lease ends them.
func (s *Scope) Bound(work context.Context, grace time.Duration) {
	late, end := context.WithCancelCause(context.Background())
	context.AfterFunc(work, func() {
		time.AfterFunc(grace, func() { end(fmt.Errorf("the operator ends and has waited %s for its passes", grace)) })
	})
	s.Writer.Terms = append(s.Writer.Terms, func(string) context.Context { return late })
}

// close lets nothing be written any more.
func (s *Scope) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, config.ReleaseTimeout)
	defer cancel()
	return s.Writer.Close(ctx)
}

// Release gives the Leases back when all work has ended, so that others can go on at
// once. If it has not they wait.
func (s *Scope) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.ReleaseTimeout)
	defer cancel()
	if err := s.Writer.Close(ctx); err != nil {
		return err
	}
	return s.claims.Release(ctx)
}

// ChangesHands lets Leases through that are another's from now on. What is known of
// them is noted first, so that who is woken finds it.
func (s *Scope) ChangesHands() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			s.View.Observe(e.Object.(*coordinationv1.Lease))
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*coordinationv1.Lease), e.ObjectNew.(*coordinationv1.Lease)
			s.View.Observe(is)
			return Read(is).Follows(Read(was))
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			s.View.Forget(e.Object.(*coordinationv1.Lease))
			return true
		},
	}
}

// OnWake adds a function that enqueues all objects of a kind in a namespace.
func (s *Scope) OnWake(wake func(ctx context.Context, namespace string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = append(s.wake, wake)
}

// wakeAll has everything in a namespace looked at; everywhere if it is empty.
func (s *Scope) wakeAll(ctx context.Context, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wake := range s.wake {
		wake(ctx, namespace)
	}
}

// Claims reports whether the operator holds Leases of its own.
func (s *Scope) Claims() bool { return len(s.claims.Holders) > 0 }

// Idle says why nothing can be written anywhere; nil if it can.
func (s *Scope) Idle() error { return s.claims.Idle() }

// Start holds the Leases until ctx ends.
func (s *Scope) Start(ctx context.Context) error { return s.claims.Start(ctx) }

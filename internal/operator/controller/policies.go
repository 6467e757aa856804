package controller

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=dynamo-operator-namespace-scope;dynamo-operator-request-namespace;dynamo-operator-graph-ingress;dynamo-operator-component-ingress;dynamo-operator-scaling-adapter;dynamo-operator-worker-metadata,verbs=get,roleName=dynamo-operator-manager-cluster

// policyPeriod is how often the policies are looked at, and policyMemory how long
// an answer serves the reconciles that ask for it: what counts is whether objects were
// judged when they were written, long before.
const (
	policyPeriod = time.Minute
	policyMemory = 10 * time.Second
)

// policies tells whether the installation's ValidatingAdmissionPolicies are
// enforced. The rules of tenants that the API server has to check are theirs; where
// one is missing, the controllers refuse what it would have judged.
type policies struct {
	reader  client.Reader
	names   config.Tenancy
	metrics *metric.Metrics
	clock   clock.WithTicker

	mu    sync.Mutex
	asked map[config.Policy]policyAnswer
}

type policyAnswer struct {
	enforced bool
	at       time.Time
}

// SetupPolicies looks at the policies of a cluster-wide installation.
func SetupPolicies(_ context.Context, d *Deps) error {
	if !d.Config.ClusterWide() {
		return nil // it may not read what is of the cluster
	}
	return d.Add(d.policies())
}

// policies are the same for all who ask.
func (d *Deps) policies() *policies {
	if d.enforced == nil {
		d.enforced = &policies{reader: d.GetAPIReader(), names: d.Config.Tenancy, metrics: d.Metrics, clock: clock.RealClock{}, asked: map[config.Policy]policyAnswer{}}
	}
	return d.enforced
}

// NewRoutes judges Ingresses and VirtualServices by the configuration, and by whether
// their authors are authorized.
func (d *Deps) NewRoutes() Routes {
	r := Routes{Rules: d.Config.Rules().Ingress}
	switch {
	case d.Config.ClusterWide():
		r.Authorized = func(ctx context.Context) (bool, error) {
			return d.policies().Enforced(ctx, config.PolicyGraphIngress, config.PolicyComponentIngress)
		}
	case d.Config.Tenancy.AssumePolicies:
		r.Authorized = func(context.Context) (bool, error) { return true, nil }
	}
	return r
}

// Enforced reports whether all of some policies are.
func (p *policies) Enforced(ctx context.Context, all ...config.Policy) (bool, error) {
	for _, policy := range all {
		p.mu.Lock()
		known, found := p.asked[policy]
		p.mu.Unlock()
		if !found || p.clock.Since(known.at) > policyMemory {
			state, err := p.ask(ctx, policy)
			if err != nil {
				return false, err
			}
			known.enforced = state.InForce()
		}
		if !known.enforced {
			return false, nil
		}
	}
	return true, nil
}

func (p *policies) ask(ctx context.Context, policy config.Policy) (snapshot.PolicyState, error) {
	states, err := observe.Policies(ctx, p.reader, p.names.PolicyName(policy))
	if err != nil {
		return snapshot.PolicyState{}, err
	}
	state := states[0]
	p.metrics.Policy(state.Name, state.InForce())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[policy] = policyAnswer{state.InForce(), p.clock.Now()}
	return state, nil
}

// Start says which policies are missing, when that changes.
func (p *policies) Start(ctx context.Context) error {
	said := map[config.Policy]string{}
	ticker := p.clock.NewTicker(policyPeriod)
	defer ticker.Stop()
	for {
		for _, policy := range config.Policies {
			state, err := p.ask(ctx, policy)
			if err != nil {
				log.FromContext(ctx).Error(err, "policy check failed, retrying")
				continue
			}
			problems := strings.Join(state.Problems, "; ")
			if problems == said[policy] {
				continue
			}
			said[policy] = problems
			if problems == "" {
				log.FromContext(ctx).Info("policy is enforced", "policy", state.Name)
			} else {
				log.FromContext(ctx).Error(nil, "policy is not enforced", "policy", state.Name, "problems", problems)
			}
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

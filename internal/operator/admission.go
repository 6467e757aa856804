package operator

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/admission"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/certificate"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

// The webhook's certificate is in a Secret beside the operator.
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=webhook-server-cert,verbs=get;update,namespace=dynamo-system,roleName=dynamo-operator-webhook
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create,namespace=dynamo-system,roleName=dynamo-operator-webhook
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list,namespace=dynamo-system,roleName=dynamo-operator-webhook

// newKeeper keeps the certificate of webhooks and metrics; there is none where
// neither is served over TLS. An operator that runs in no namespace of a cluster
// has no Secret to share: its metrics get a certificate that nobody can verify.
func newKeeper(cfg config.Config) *certificate.Keeper {
	names := certificateNames(cfg)
	if len(names) == 0 || cfg.Webhook.Namespace == "" {
		return nil
	}
	return &certificate.Keeper{
		Secret:      types.NamespacedName{Namespace: cfg.Webhook.Namespace, Name: cfg.Certificate.Secret},
		Names:       names,
		Life:        certificate.Life{Serving: cfg.Certificate.Validity.Duration, Authority: cfg.Certificate.AuthorityValidity.Duration},
		External:    cfg.Certificate.Mode != config.CertificateSelf,
		Authorities: []byte(cfg.Certificate.CABundle),
		Clock:       clock.RealClock{},
	}
}

// addAdmission keeps the certificate, and serves webhooks on every replica, so what
// it writes is written by those that do not lead, too. What it returns waits for
// the last request to be answered.
func addAdmission(ctx context.Context, mgr manager.Manager, cluster *rest.Config, cfg config.Config, keeper *certificate.Keeper, have admission.Capabilities, counted *metric.Metrics, stored *storedVersions) (finish func(), err error) {
	direct, err := client.New(cluster, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	if keeper != nil {
		keeper.Direct, keeper.Failed = direct, counted.CertificateFailed
	}
	if keeper == nil || !cfg.Webhook.Enabled {
		return func() {}, addWithoutWebhooks(mgr, direct, cfg, keeper)
	}
	self := whoami(ctx, direct)
	server := &admission.Server{
		Address:       cfg.Webhook.Address,
		Certificate:   keeper.Certificate,
		HTTP2:         cfg.Server.HTTP2,
		Scope:         cfg.Rules(),
		Operator:      self,
		Capabilities:  have,
		Drain:         cfg.Webhook.Drain.Duration,
		AnswerTimeout: config.AnswerTimeout,
		Clock:         clock.RealClock{},
	}
	before := newBeforeCaches()
	runnables := []manager.Runnable{before, before.runs(keeper), before.runs(server)}
	if cfg.Webhook.Register {
		registrar := &admission.Registrar{Direct: direct, Registration: registration(cfg, self), FieldManager: apply.FieldManager, Owner: cfg.Webhook.Owner, Pod: cfg.Webhook.Pod}
		keeper.Publish = registrar.Publish
		runnables = append(runnables, registrar)
		if cfg.ClusterWide() {
			publisher := newPublisher(mgr, direct, cfg, registrar)
			keeper.Publish = func(ctx context.Context, trusted []byte) error {
				publisher.Trust(trusted)
				return registrar.Publish(ctx, trusted)
			}
			runnables = append(runnables, before.runs(publisher), newMigrator(direct, publisher))
			stored.Store(publisher)
			if err := watchDefinitions(ctx, mgr, publisher); err != nil {
				return nil, err
			}
		}
	}
	for _, r := range runnables {
		if err := mgr.Add(r); err != nil {
			return nil, err
		}
	}
	return server.Wait, mgr.AddReadyzCheck("webhooks", func(*http.Request) error {
		if server.Listening() == nil || !keeper.Held() {
			return errors.New("webhooks are not served yet")
		}
		return nil
	})
}

// addWithoutWebhooks keeps the certificate of metrics, if there is one, and withdraws
// what an operator of the cluster served while it had webhooks: nobody converts now.
// Definitions are not watched for that: replicas that still have webhooks would serve
// it again at once, to and fro.
func addWithoutWebhooks(mgr manager.Manager, direct client.Client, cfg config.Config, keeper *certificate.Keeper) error {
	before := newBeforeCaches()
	runnables := []manager.Runnable{before}
	if keeper != nil {
		runnables = append(runnables, keeper)
	}
	if cfg.ClusterWide() && cfg.Webhook.Namespace != "" {
		runnables = append(runnables, before.runs(newPublisher(mgr, direct, cfg, nil)))
	}
	for _, r := range runnables {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	return nil
}

func registration(cfg config.Config, self string) admission.Registration {
	r := admission.Registration{
		Name:           cfg.Webhook.Configuration,
		Service:        types.NamespacedName{Namespace: cfg.Webhook.Namespace, Name: cfg.Webhook.Service},
		URL:            cfg.Webhook.URL,
		Except:         cfg.Excluded(),
		FailurePolicy:  admissionregistrationv1.FailurePolicyType(cfg.Webhook.FailurePolicy),
		TimeoutSeconds: cfg.Webhook.TimeoutSeconds,
		Operator:       self,
	}
	if cfg.Certificate.Mode == config.CertificateManager {
		r.InjectFrom = cfg.Certificate.CertManagerCertificate
	}
	return r
}

// certificateNames are all by which API servers and scrapers may call.
func certificateNames(cfg config.Config) []string {
	var services []string
	if cfg.Webhook.Enabled {
		services = append(services, cfg.Webhook.Service)
	}
	if cfg.Server.Secures() && cfg.Server.MetricsService != "" {
		services = append(services, cfg.Server.MetricsService)
	}
	var names []string
	for _, service := range services {
		name := service + "." + cfg.Webhook.Namespace + ".svc"
		names = append(names, name, name+"."+cfg.Certificate.ClusterDomain)
	}
	if u, err := url.Parse(cfg.Webhook.URL); err == nil && u.Hostname() != "" {
		names = append(names, u.Hostname())
	}
	return names
}

// whoami asks the API server who we are to it; nobody in particular if it does
// not say.
func whoami(ctx context.Context, c client.Writer) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		log.FromContext(ctx).Error(err, "SelfSubjectReview failed")
	}
	return review.Status.UserInfo.Username
}

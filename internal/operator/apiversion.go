package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/admission"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/apiversion"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// newPublisher leads the definitions to the webhooks' server, which converts, too;
// away from it where nobody registers webhooks.
func newPublisher(mgr manager.Manager, direct client.Client, cfg config.Config, registrar *admission.Registrar) *apiversion.Publisher {
	c := definition.Converter{
		Service: types.NamespacedName{Namespace: cfg.Webhook.Namespace, Name: cfg.Webhook.Service},
		URL:     cfg.Webhook.URL, Path: admission.ConvertPath,
	}
	if cfg.Certificate.Mode == config.CertificateManager {
		c.InjectFrom = cfg.Certificate.CertManagerCertificate
	}
	p := &apiversion.Publisher{Direct: direct, Converter: c, Namespace: cfg.Webhook.Namespace, Timing: apiversion.DefaultTiming, Clock: clock.RealClock{}}
	if registrar != nil {
		p.Serve, p.Reachable = cfg.API.V1beta1.Enabled, registrar.Served
	}
	p.Tell = tell(mgr, p.Serve)
	return p
}

// Reasons of events about the definitions.
const (
	reasonVersionServed   = "VersionServed"
	reasonVersionUnserved = "VersionNotServed"
)

// tell logs what keeps v1beta1 from being served, and emits an event about the
// definition of graphs.
func tell(mgr manager.Manager, wanted bool) func(context.Context, string) {
	recorder := mgr.GetEventRecorder("dynamo-operator")
	about := observe.Definition()
	about.Name = "dynamographdeployments.nvidia.com"
	version := v1beta1.SchemeGroupVersion.String()
	return func(ctx context.Context, problem string) {
		logger := log.FromContext(ctx).WithValues("version", version)
		switch {
		case problem != "":
			logger.Error(nil, "version is not served", "problem", problem)
			recorder.Eventf(about, nil, corev1.EventTypeWarning, reasonVersionUnserved, "Serve", "%.900s", fmt.Sprintf("%s is not served: %s", version, problem))
		case wanted:
			logger.Info("version is served again")
			recorder.Eventf(about, nil, corev1.EventTypeNormal, reasonVersionServed, "Serve", "%s is served again", version)
		}
	}
}

// newMigrator stores anew what was stored as v1beta1.
func newMigrator(direct client.Client, p *apiversion.Publisher) *apiversion.Migrator {
	return &apiversion.Migrator{Direct: direct, Stored: p.Stored, Done: p.Recheck, Every: 5 * time.Second, Clock: clock.RealClock{}}
}

// watchDefinitions has a definition that somebody applied looked at at once.
func watchDefinitions(ctx context.Context, mgr manager.Manager, p *apiversion.Publisher) error {
	informer, err := mgr.GetCache().GetInformer(ctx, observe.Definition())
	if err != nil {
		return fmt.Errorf("watch definitions: %w", err)
	}
	converted := func(object any) bool {
		o, ok := object.(metav1.Object)
		return ok && slices.Contains(definition.Converted, o.GetName())
	}
	_, err = informer.AddEventHandler(toolscache.FilteringResourceEventHandler{FilterFunc: converted, Handler: toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { p.Wake() },
		UpdateFunc: func(before, now any) {
			if before.(metav1.Object).GetGeneration() != now.(metav1.Object).GetGeneration() {
				p.Wake()
			}
		},
	}})
	return err
}

// storedVersions knows whether objects are stored as v1beta1.
type storedVersions struct {
	atomic.Pointer[apiversion.Publisher]
}

func (s *storedVersions) needConversion() bool {
	p := s.Load()
	return p != nil && len(p.Stored()) > 0
}

// beforeCaches runs what informers may need for their first list, and the manager
// therefore has to start before them. It ends with all else that every replica runs:
// the manager would let it outlive the controllers.
type beforeCaches struct {
	ending context.Context
	end    context.CancelFunc
}

func newBeforeCaches() *beforeCaches {
	ctx, cancel := context.WithCancel(context.Background())
	return &beforeCaches{ctx, cancel}
}

// NeedLeaderElection is false: it ends with what every replica runs.
func (b *beforeCaches) NeedLeaderElection() bool { return false }

// Start waits for the end.
func (b *beforeCaches) Start(ctx context.Context) error {
	<-ctx.Done()
	b.end()
	return nil
}

func (b *beforeCaches) runs(r manager.Runnable) manager.Runnable { return early{b, r} }

// early looks to the manager like its own webhook server, which it starts first.
type early struct {
	until *beforeCaches
	run   manager.Runnable
}

// Start runs until the manager ends it, or the others.
func (e early) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.until.ending, cancel)()
	return e.run.Start(ctx)
}

// NeedLeaderElection is false: every replica serves.
func (e early) NeedLeaderElection() bool { return false }

// Register is not used: what runs has its paths.
func (e early) Register(string, http.Handler) {}

// StartedChecker is not used: there are checks of our own.
func (e early) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux is not used either.
func (e early) WebhookMux() *http.ServeMux { return http.NewServeMux() }

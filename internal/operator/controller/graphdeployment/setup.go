package graphdeployment

import (
	"context"
	"errors"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/frontend"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scrape"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of DynamoGraphDeployments: its children, what Grove
// makes beneath them, pods, and the KAI queue.
func Setup(ctx context.Context, d *controller.Deps) error {
	children, claims, beneath := Children(), Claims(), Beneath()
	if d.Config.Rollout.Generations {
		children = append(children, Revisions())
	}
	if err := d.Index(ctx, append(controller.Required(children), claims)...); err != nil {
		return err
	}
	pods, err := d.Inspector(ctx)
	if err != nil {
		return err
	}
	proxy, err := d.Config.Network.Proxy()
	if err != nil {
		return err
	}
	leases, err := d.ActivationLeases()
	if err != nil {
		return err
	}
	recorder := d.GetEventRecorder("dynamographdeployment")
	cleanup, err := d.NewCleanup(ctx, recorder)
	if err != nil {
		return err
	}
	w, err := d.Watch(&v1alpha1.DynamoGraphDeployment{}, &v1alpha1.DynamoGraphDeploymentList{}, children, recorder, reconcile.AsReconciler(d.GetClient(), &Reconciler{
		Client: d.GetClient(),
		Observer: Observer{
			Children: observe.New(d.GetClient(), children...),
			Claims:   observe.New(d.GetClient(), claims),
			Beneath:  observe.New(d.GetClient(), beneath...),
			Facts:    d.Facts,
			Pods:     pods,
			Rollouts: Rollouts{
				Generations: d.Config.Rollout.Generations, NoSpareAfter: d.Config.Rollout.NoSpareAfter.Duration, AdmissionDeadline: d.Config.Rollout.AdmissionDeadline.Duration,
				Settings: managed.Settings{ProgressDeadline: d.Config.Rollout.ProgressDeadline.Duration, HistoryLimit: d.Config.Rollout.HistoryLimit},
			},
			NodeLabels: d.Config.Rules().NodeLabels,
			Frontends:  frontend.NewPoller(ctx, proxy),
			Workers:    scrape.New(ctx, proxy),
			Leases:     leases,
			Admissions: &Admissions{},
			Crashes:    &Crashes{},
			Expected:   &Expectations{},
			Budgets:    &Ledger{Budgets: d.Config.Scaling.Budgets(), Defaults: d.Config.Platform().Defaults, Facts: d.Facts},
		},
		Applier:        d.Applier,
		Cleanup:        cleanup,
		Events:         recorder,
		Clock:          clock.RealClock{},
		StatusThrottle: d.NewStatusThrottle(),
		Platform:       d.Config.Platform(),
		Routes:         d.NewRoutes(),
	}))
	if err != nil {
		return err
	}
	w.Beneath = beneath
	w.Around = []observe.Child{
		{Object: observe.Queue(), API: snapshot.APIKAI},
		{Object: &resourcev1.ResourceClaimTemplate{}, API: snapshot.APIDevices},
	}
	return errors.Join(d.WatchClaims(w), d.WatchPods(w, controller.GraphOfPod), d.WatchLeases(w, leases))
}

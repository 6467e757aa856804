package componentdeployment

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// Setup adds the controller of DynamoComponentDeployments: its children and pods.
func Setup(ctx context.Context, d *controller.Deps) error {
	children := Children()
	if err := d.Index(ctx, controller.Required(children)...); err != nil {
		return err
	}
	if err := observe.IndexAccounts(ctx, d.GetFieldIndexer()); err != nil {
		return err
	}
	pods, err := d.Inspector(ctx)
	if err != nil {
		return err
	}
	recorder := d.GetEventRecorder("dynamocomponentdeployment")
	cleanup, err := d.NewCleanup(ctx, recorder)
	if err != nil {
		return err
	}
	w, err := d.Watch(&v1alpha1.DynamoComponentDeployment{}, &v1alpha1.DynamoComponentDeploymentList{}, children, recorder, reconcile.AsReconciler(d.GetClient(), &Reconciler{
		Client:         d.GetClient(),
		Observer:       observe.New(d.GetClient(), children...),
		Facts:          d.Facts,
		Pods:           pods,
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
	w.Around = []observe.Child{{Object: &resourcev1.ResourceClaimTemplate{}, API: snapshot.APIDevices}}
	return d.WatchPods(w, controller.ComponentOfPod)
}

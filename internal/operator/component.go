package operator

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/componentdeployment"
)

func addComponents(ctx context.Context, p *deps) error {
	children := componentdeployment.Children()
	if err := p.index(ctx, required(children)...); err != nil {
		return err
	}
	if err := observe.IndexAccounts(ctx, p.GetFieldIndexer()); err != nil {
		return err
	}
	pods, err := inspector(ctx, p)
	if err != nil {
		return err
	}
	recorder := p.GetEventRecorder("dynamocomponentdeployment")
	farewell, err := p.cleanup(ctx, recorder)
	if err != nil {
		return err
	}
	kind := observe.Child{Object: &v1alpha1.DynamoComponentDeployment{}, List: &v1alpha1.DynamoComponentDeploymentList{}}
	w, err := watch(p, kind, children, recorder, reconcile.AsReconciler(p.GetClient(), &componentdeployment.Reconciler{
		Client:         p.GetClient(),
		Observer:       observe.New(p.GetClient(), children...),
		Facts:          p.facts,
		Pods:           pods,
		Applier:        p.applier,
		Cleanup:        farewell,
		Events:         recorder,
		Clock:          clock.RealClock{},
		StatusThrottle: p.statusThrottle(),
		Platform:       p.config.Platform(),
		Routes:         p.routes(),
	}))
	if err != nil {
		return err
	}
	return watchPods(p, w, componentOfPod)
}

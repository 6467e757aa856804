package operator

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller/graphdeployment"
)

func addGraphs(ctx context.Context, p *deps) error {
	children, beneath := graphdeployment.Children(), graphdeployment.Beneath()
	if err := p.index(ctx, required(children)...); err != nil {
		return err
	}
	pods, err := inspector(ctx, p)
	if err != nil {
		return err
	}
	recorder := p.GetEventRecorder("dynamographdeployment")
	farewell, err := p.cleanup(ctx, recorder)
	if err != nil {
		return err
	}
	kind := observe.Child{Object: &v1alpha1.DynamoGraphDeployment{}, List: &v1alpha1.DynamoGraphDeploymentList{}}
	w, err := watch(p, kind, children, recorder, reconcile.AsReconciler(p.GetClient(), &graphdeployment.Reconciler{
		Client: p.GetClient(),
		Observer: graphdeployment.Observer{
			Children: observe.New(p.GetClient(), children...),
			Beneath:  observe.New(p.GetClient(), beneath...),
			Facts:    p.facts,
			Pods:     pods,
		},
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
	w.beneath = beneath
	w.around = []observe.Child{{Object: observe.Queue(), API: snapshot.APIKAI}}
	return watchPods(p, w, graphOfPod)
}

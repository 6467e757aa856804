package app

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/controller/graphdeployment"
	"github.com/dynamo-operator/dynamo-operator/internal/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/snapshot"
)

func addGraphs(ctx context.Context, p *parts) error {
	children, beneath := graphdeployment.Children(), graphdeployment.Beneath()
	claims := graphdeployment.Claims()
	if err := p.index(ctx, append(required(children), claims)...); err != nil {
		return err
	}
	pods, err := inspector(ctx, p)
	if err != nil {
		return err
	}
	recorder := p.GetEventRecorder("dynamographdeployment")
	farewell, err := p.farewell(ctx, recorder)
	if err != nil {
		return err
	}
	kind := observe.Child{Object: &v1alpha1.DynamoGraphDeployment{}, List: &v1alpha1.DynamoGraphDeploymentList{}}
	w, err := watch(p, kind, children, recorder, reconcile.AsReconciler(p.GetClient(), &graphdeployment.Reconciler{
		Client: p.GetClient(),
		World: graphdeployment.World{
			Children: observe.New(p.GetClient(), children...),
			Claims:   observe.New(p.GetClient(), claims),
			Beneath:  observe.New(p.GetClient(), beneath...),
			Facts:    p.facts,
			Pods:     pods,
		},
		Applier:  p.applier,
		Farewell: farewell,
		Events:   recorder,
		Clock:    clock.RealClock{},
		Patience: p.patience(),
		Platform: p.config.Platform(),
		Routes:   p.routes(),
	}))
	if err != nil {
		return err
	}
	w.beneath = beneath
	w.around = []observe.Child{{Object: observe.Queue(), API: snapshot.APIKAI}}
	return watchPods(p, w, graphOfPod)
}

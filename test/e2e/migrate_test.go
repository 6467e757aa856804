package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAGraphMovesToGroveAndBackWithoutTwins(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, need(t, grove))
	w.create(w.restful("mover"))
	w.runsOn("mover", v1alpha1.WorkloadProviderGrove)
	w.patchGraph("mover", `{"metadata":{"annotations":{"nvidia.com/enable-grove":"false"}}}`)
	w.runsOn("mover", v1alpha1.WorkloadProviderComponent)
	w.gone(&grovev1alpha1.PodCliqueSet{}, "mover")
	w.patchGraph("mover", `{"metadata":{"annotations":{"nvidia.com/enable-grove":"true"}}}`)
	w.runsOn("mover", v1alpha1.WorkloadProviderGrove)
	w.gone(&v1alpha1.DynamoComponentDeployment{}, "mover-decode")
	w.gone(&appsv1.Deployment{}, "mover-decode")
}

// runsOn waits until a graph is ready on a provider, with one pod a service.
func (w world) runsOn(name, provider string) {
	w.Helper()
	w.eventually("graph "+name+" on "+provider, func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := w.cluster.Client.Get(ctx, w.key(name), dgd); err != nil {
			return err
		}
		if dgd.Annotations[v1alpha1.AnnotationWorkloadProvider] != provider || dgd.Status.State != v1alpha1.GraphStateSuccessful {
			return fmt.Errorf("provider %q, state %s", dgd.Annotations[v1alpha1.AnnotationWorkloadProvider], dgd.Status.State)
		}
		onGrove := dgd.Status.Services["decode"].ComponentKind == v1alpha1.ComponentKindPodClique
		if onGrove != (provider == v1alpha1.WorkloadProviderGrove) {
			return fmt.Errorf("decode runs as %s", dgd.Status.Services["decode"].ComponentKind)
		}
		pods := w.pods(ctx)
		for _, pod := range pods {
			if ref := metav1.GetControllerOf(&pod); ref == nil || (ref.Kind == "PodClique") != onGrove {
				return errors.New(pod.Name + " is a twin")
			}
		}
		if len(pods) != len(dgd.Spec.Services) {
			return fmt.Errorf("%d pods for %d services", len(pods), len(dgd.Spec.Services))
		}
		return nil
	})
	w.ready(name)
}

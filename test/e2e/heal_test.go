package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// Not parallel: it takes the API server away from under every other test.
func TestAKilledAPIServerComesBackAndTheGraphGoesOn(t *testing.T) {
	w := newWorld(t)
	w.apply(quickstart)
	dgd := w.ready("quickstart")

	kill(t, controlPlane(t, "kube-apiserver"))
	w.eventually("the API server to answer again", func(ctx context.Context) error {
		return w.cluster.Client.Get(ctx, w.key("quickstart"), &v1alpha1.DynamoGraphDeployment{})
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"services":{"decode":{"replicas":2}}}}`))
	w.eventually("a change to be taken", func(ctx context.Context) error {
		return w.cluster.Client.Patch(ctx, dgd, patch)
	})
	w.eventually("the change to be carried out", func(context.Context) error {
		if got := w.ready("quickstart").Status.Services["decode"].Replicas; got != 2 {
			return fmt.Errorf("decode has %d replicas", got)
		}
		return nil
	})
	w.answers(w.frontendURL(dgd))
}

func TestAKilledEngineIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	dgd := w.ready("quickstart")

	w.settled()
	mark := w.mark()
	pod := w.podOf("quickstart", "decode")
	kill(t, engineOf(t, pod))
	w.eventually("the container to be restarted", func(ctx context.Context) error {
		var again corev1.Pod
		if err := w.cluster.Client.Get(ctx, client.ObjectKeyFromObject(&pod), &again); err != nil {
			return err
		}
		status := again.Status.ContainerStatuses[0]
		if status.RestartCount == 0 || !status.Ready {
			return fmt.Errorf("restarts %d, ready %v", status.RestartCount, status.Ready)
		}
		return nil
	})
	w.ready("quickstart")
	w.answers(w.frontendURL(dgd))
	w.healed("a crash", mark, "")
}

func TestADeletedPodIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	dgd := w.ready("quickstart")

	old := w.podOf("quickstart", "decode")
	if err := w.cluster.Client.Delete(w.ctx, &old); err != nil {
		t.Fatal(err)
	}
	w.gone(&corev1.Pod{}, old.Name)
	w.eventually("another pod", func(ctx context.Context) error {
		for _, pod := range w.pods(ctx) {
			if pod.Labels[v1alpha1.LabelComponent] == "decode" && pod.UID != old.UID {
				return nil
			}
		}
		return errors.New("none yet")
	})
	w.ready("quickstart")
	w.answers(w.frontendURL(dgd))
}

func TestWhatIsDeletedOrEditedByHandIsPutBackWithOneWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.restful("g"))
	w.ready("g")
	w.settled()

	mark := w.mark()
	service := &corev1.Service{}
	service.Namespace, service.Name = w.namespace, "g-decode"
	if err := w.cluster.Client.Delete(w.ctx, service); err != nil {
		t.Fatal(err)
	}
	w.eventually("the Service to come back", func(ctx context.Context) error {
		return w.cluster.Client.Get(ctx, w.key("g-decode"), &corev1.Service{})
	})
	w.healed("a deleted Service", mark, "1 patch services")

	mark = w.mark()
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = w.namespace, "g-decode"
	if err := w.cluster.Client.Patch(w.ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`))); err != nil {
		t.Fatal(err)
	}
	w.eventually("the Deployment to be corrected", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("g-decode"), deployment); err != nil {
			return err
		}
		if *deployment.Spec.Replicas != 1 || deployment.Status.Replicas != 1 {
			return fmt.Errorf("%d replicas", deployment.Status.Replicas)
		}
		return nil
	})
	w.ready("g")
	w.healed("an edited Deployment", mark, "1 patch deployments")
}

// healed waits until the operator is done with what went wrong after a mark and
// checks what it wrote: exactly the children that it had to, no object twice,
// and otherwise only what it has to tell about the change.
func (w world) healed(from string, mark int64, children string) {
	w.Helper()
	w.settled()
	told, wrote := 0, []write{}
	for _, one := range w.byOperator(mark) {
		// An attempt that was refused has changed nothing and is made again.
		if one.Ref.Subresource == "status" || one.Ref.Resource == "events" || one.Status.Code >= 400 {
			told++
		} else {
			wrote = append(wrote, one)
		}
	}
	if got := tally(wrote); got != children {
		w.Errorf("%s: wrote %q, want %q", from, got, children)
	}
	// Each turn of a pod is told by the component and by the graph at most once.
	if most := 40; told > most {
		w.Errorf("%s: %d status patches and events, more than %d", from, told, most)
	}
	summary.Line(w.T, "healed from %s: %d writes to children, %d status patches and events", from, len(wrote), told)
}

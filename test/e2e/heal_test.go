package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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

	pod := w.podOf("quickstart", "decode")
	kill(t, engineOf(t, pod))
	w.eventually("the container to be restarted", func(ctx context.Context) error {
		var again corev1.Pod
		if err := w.cluster.Client.Get(ctx, client.ObjectKeyFromObject(&pod), &again); err != nil {
			return err
		}
		status := again.Status.ContainerStatuses[0]
		if status.RestartCount != 1 || !status.Ready {
			return fmt.Errorf("restarts %d, ready %v", status.RestartCount, status.Ready)
		}
		return nil
	})
	w.ready("quickstart")
	w.answers(w.frontendURL(dgd))
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

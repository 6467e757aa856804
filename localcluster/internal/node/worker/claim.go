package worker

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/device"
)

// prepareClaims takes the devices that the scheduler has allocated to the pod.
// What the API says of them is asked anew: a claim is often made, allocated and
// needed within one moment.
func (w *Worker) prepareClaims(ctx context.Context) error {
	pod := w.object()
	var all []device.Device
	for i := range pod.Spec.ResourceClaims {
		name, generated, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return err
		}
		if name == nil {
			continue // the controller saw that no claim is needed
		}
		claim, err := w.host.Claims.Claim(ctx, pod.Namespace, *name)
		if err != nil {
			return err
		}
		devices, err := device.Allocated(pod, pod.Spec.ResourceClaims[i].Name, claim, generated)
		if err != nil {
			return err
		}
		if err := w.host.Claims.Prepared(ctx, claim, devices); err != nil {
			return err
		}
		all = append(all, devices...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.devices = all
	return nil
}

// deviceEnv tells a container what it has: a real node shows devices themselves,
// here there are but their names and number, and engines that divide themselves
// among GPUs need it. A device plugin's GPUs and a claim's count alike.
func (w *Worker) deviceEnv(c *corev1.Container) map[string]string {
	w.mu.Lock()
	devices := device.Of(c, w.devices)
	w.mu.Unlock()
	env := map[string]string{}
	limit := c.Resources.Limits["nvidia.com/gpu"]
	gpus := limit.Value()
	var names []string
	for _, d := range devices {
		names = append(names, d.String())
		if d.GPU() {
			gpus++
		}
	}
	if gpus > 0 {
		env["DYNAMO_GPUS"] = strconv.FormatInt(gpus, 10)
	}
	if names != nil {
		env["DYNAMO_DEVICES"] = strings.Join(names, ",")
	}
	return env
}

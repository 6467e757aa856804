package worker

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/util/parsers"
)

// pull fails for a name that is none, and as long as a fault says so. Reasons
// and messages are those of a kubelet with containerd.
func (c *container) pull(stop context.Context) bool {
	for pulls := 1; stop.Err() == nil; pulls++ {
		pod := c.w.object()
		f, bad := faultsOf(pod, c.name)
		for _, key := range bad {
			c.w.warn(key, nil, "InvalidFault", "Annotation %s=%q is not understood and has no effect", key, pod.Annotations[key])
		}
		spec := c.spec(pod)
		if err := named(spec.Image); err != nil {
			c.misnamed(stop, spec, err)
			continue
		}
		if f.imagePull == "" {
			return true
		}
		c.pullFailed(stop, spec, refusal(spec.Image, f.imagePull), pulls)
	}
	return false
}

// named says whether an image has a name at all. One that published manifests
// leave to be filled in is played like any other.
func named(image string) error {
	if strings.HasPrefix(image, "${") {
		return nil
	}
	_, _, _, err := parsers.ParseImageName(image)
	return err
}

// misnamed waits for another name.
func (c *container) misnamed(stop context.Context, spec *corev1.Container, err error) {
	message := fmt.Sprintf("Failed to apply default image tag %q: %v", spec.Image, err)
	c.w.event(spec, corev1.EventTypeWarning, "InspectFailed", "%s", message)
	c.w.event(spec, corev1.EventTypeWarning, "Failed", "Error: InvalidImageName")
	c.update(func(cs *containerStatus) { c.retire(cs); cs.State = waiting("InvalidImageName", message) })
	for c.spec(c.w.object()).Image == spec.Image {
		changed := c.w.changed.heard()
		select {
		case <-stop.Done():
			return
		case <-changed:
		case <-time.After(again):
		}
	}
}

// pullFailed is one attempt, and the pause after it.
func (c *container) pullFailed(stop context.Context, spec *corev1.Container, failure string, pulls int) {
	c.w.event(spec, corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", spec.Image, failure)
	c.w.event(spec, corev1.EventTypeWarning, "Failed", "Error: ErrImagePull")
	c.update(func(cs *containerStatus) { c.retire(cs); cs.State = waiting("ErrImagePull", failure) })
	c.until(stop, c.w.host.Backoff.Base)
	if stop.Err() != nil {
		return
	}
	c.w.event(spec, corev1.EventTypeNormal, "BackOff", "Back-off pulling image %q", spec.Image)
	c.w.event(spec, corev1.EventTypeWarning, "Failed", "Error: ImagePullBackOff")
	c.update(func(cs *containerStatus) {
		cs.State = waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", spec.Image, failure))
	})
	c.until(stop, c.w.host.Backoff.after(pulls+1))
}

// refusal is what a registry without the image says.
func refusal(image, kind string) string {
	if kind == pullRefused {
		return fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: "+
			"pull access denied, repository does not exist or may require authorization: "+
			"authorization failed: no basic auth credentials", image, image)
	}
	return fmt.Sprintf("rpc error: code = NotFound desc = failed to pull and unpack image %q: failed to resolve reference %q: %s: not found",
		image, image, image)
}

// until waits, but no longer than the fault lasts.
func (c *container) until(stop context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(stop, d)
	defer cancel()
	for {
		changed := c.w.changed.heard()
		if f, _ := faultsOf(c.w.object(), c.name); f.imagePull == "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

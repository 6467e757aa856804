package worker

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/status"
)

// retry is the pause after a call that the API refused.
const retry = time.Second

// poke asks for a report; any number of pokes before it are one.
func (w *Worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// report sends the status whenever it changed.
func (w *Worker) report(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		if err := w.push(ctx); err != nil {
			klog.ErrorS(err, "Report a pod's status")
			w.poke()
			pause(ctx, retry)
		}
	}
}

// push sends the status if it differs from what the API has.
func (w *Worker) push(ctx context.Context) error {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	view, quiet := w.view()
	if quiet {
		return nil
	}
	pod := view.Pod
	patch, err := status.Patch(pod.UID, pod.Status, status.Of(view))
	if err != nil {
		return fmt.Errorf("patch the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if patch == nil {
		return nil
	}
	updated, err := w.host.API.PatchStatus(ctx, pod, patch)
	if apierrors.IsNotFound(err) {
		return nil // the agent will hear of it too, and tell
	}
	if err != nil {
		return fmt.Errorf("patch the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if newer(updated, w.pod) {
		w.pod = updated
	}
	return nil
}

// view is what is known now, and whether the API should not hear of it.
func (w *Worker) view() (status.View, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := status.View{
		Pod: w.pod, Containers: maps.Clone(w.containers),
		HostIP: w.host.HostIP, StartTime: w.start, Now: now(),
		Prepared: w.prepared, Stopping: w.stop.Err() != nil, Ended: w.ended,
		Reason: w.reason, Message: w.message,
	}
	if w.place != nil {
		v.PodIP = w.place.Paper()
	}
	// A pod that had finished before this worker began is reported as it was.
	finished := status.Finished(w.pod.Status) && !w.prepared
	return v, w.silent || w.gone || finished
}

// finish says the last word: the final status, then that the pod is no more.
func (w *Worker) finish(ctx context.Context) {
	for ctx.Err() == nil {
		if _, quiet := w.view(); !quiet {
			if err := w.push(ctx); err != nil {
				klog.ErrorS(err, "Report a pod's end")
				pause(ctx, retry)
				continue
			}
		}
		w.mu.Lock()
		pod, quiet := w.pod, w.silent || w.gone
		w.mu.Unlock()
		if quiet {
			return
		}
		err := w.host.API.Remove(ctx, pod)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		klog.ErrorS(err, "Remove a pod that has ended", "pod", klog.KObj(pod))
		pause(ctx, retry)
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

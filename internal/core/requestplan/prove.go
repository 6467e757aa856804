package requestplan

import (
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// prove keeps of what was seen of the output only what the profiler wrote: the
// status of its pod has the digests, and the request's own status from then on.
// ConfigMaps alone prove nothing, because others than the author may write them.
func prove(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight) (Sight, profileoutput.Receipt, error) {
	proven, receipt, err := proof(r, s)
	if err != nil && GuardOutput.Off() {
		return s, nil, nil
	}
	return proven, receipt, err
}

func proof(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight) (Sight, profileoutput.Receipt, error) {
	receipt := s.Record.Receipt
	if receipt == nil {
		var err error
		if receipt, err = receiptOf(s.Job, s.Pods); err != nil {
			return s, nil, fmt.Errorf("nothing proves what the profiler left: %w", err)
		}
	}
	var err error
	if s.Output, err = receipt.Proven(graph.ProfilingOutput(r.Name), s.Output); err != nil {
		return s, nil, err
	}
	if s.ProfileData != nil {
		s.ProfileData = s.ProfileData.DeepCopy()
		if s.ProfileData.Data, err = receipt.Proven(s.ProfileData.Name, s.ProfileData.Data); err != nil {
			return s, nil, err
		}
	}
	return s, receipt, nil
}

// receiptOf reads what the pod of a Job that succeeded says that it handed over.
func receiptOf(job *batchv1.Job, pods []corev1.Pod) (profileoutput.Receipt, error) {
	for _, pod := range newest(pods) {
		if !metav1.IsControlledBy(&pod, job) || pod.Status.Phase != corev1.PodSucceeded {
			continue
		}
		if end := handedOver(pod); end != nil && end.ExitCode == 0 {
			return profileoutput.ParseReceipt(end.Message)
		}
	}
	return nil, errors.New("the pod that profiled is gone")
}

// handedOver is the end of the container that wrote the ConfigMaps: the collector
// where there is one, the profiler where it is ours.
func handedOver(pod corev1.Pod) *corev1.ContainerStateTerminated {
	var end *corev1.ContainerStateTerminated
	for _, c := range pod.Status.ContainerStatuses {
		switch c.Name {
		case CollectorContainer:
			return c.State.Terminated
		case ProfilerContainer:
			end = c.State.Terminated
		}
	}
	return end
}

package pod

import corev1 "k8s.io/api/core/v1"

// chooseProbe lets a user's probe replace ours whole. One that only tunes
// timing, and so has no handler, keeps our handler: without it the API server
// would refuse the pod.
func chooseProbe(ours, users *corev1.Probe) *corev1.Probe {
	if users == nil {
		return ours
	}
	chosen := users.DeepCopy()
	if ours != nil && (chosen.ProbeHandler == corev1.ProbeHandler{}) {
		chosen.ProbeHandler = ours.ProbeHandler
	}
	return chosen
}

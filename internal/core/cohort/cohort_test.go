package cohort

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// engine is one that runs for an hour, or what change makes of it.
func engine(name string, change ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			Labels: map[string]string{
				"nvidia.com/dynamo-graph-deployment-name": "g", "nvidia.com/dynamo-component": "decode",
				"nvidia.com/dynamo-failover-engine-group-member": "true",
				"grove.io/podcliquescalinggroup":                 "g-0-decode", "grove.io/podcliquescalinggroup-replica-index": "0", "grove.io/podclique-pod-index": "0",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "c", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(&pod)
	}
	return pod
}

func phase(p corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = p }
}

func label(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Labels = maps.Clone(pod.Labels)
		if pod.Labels[key] = value; value == "" {
			delete(pod.Labels, key)
		}
	}
}

func age(d time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(now.Add(-d)) }
}

func ending(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(now)) }

func TestACohortGoesWithAnEngineThatEnded(t *testing.T) {
	for rule, c := range map[string]struct {
		pods []corev1.Pod
		want []string
		wait time.Duration
	}{
		"which goes last":                           {[]corev1.Pod{engine("leader", phase(corev1.PodFailed)), engine("worker")}, []string{"worker", "leader"}, 0},
		"also with one that ended well":             {[]corev1.Pod{engine("leader"), engine("worker", phase(corev1.PodSucceeded))}, []string{"leader", "worker"}, 0},
		"not while all run":                         {[]corev1.Pod{engine("leader"), engine("worker", phase(corev1.PodPending))}, nil, 0},
		"not with one that is being deleted":        {[]corev1.Pod{engine("leader", phase(corev1.PodFailed), ending), engine("worker")}, nil, 0},
		"without those that are being deleted":      {[]corev1.Pod{engine("leader", phase(corev1.PodFailed)), engine("worker", ending)}, []string{"leader"}, 0},
		"after a pause, if it ends as it starts":    {[]corev1.Pod{engine("leader", phase(corev1.PodFailed), age(10*time.Second)), engine("worker", age(12*time.Second))}, nil, 20 * time.Second},
		"after a pause at most, with another clock": {[]corev1.Pod{engine("leader", phase(corev1.PodFailed), age(-time.Hour))}, nil, 30 * time.Second},
		"without pods that are no engines":          {[]corev1.Pod{engine("leader", phase(corev1.PodFailed)), engine("server", label("nvidia.com/dynamo-failover-engine-group-member", ""))}, []string{"leader"}, 0},
	} {
		t.Run(rule, func(t *testing.T) {
			lost, wait := Lost(c.pods, now)
			var got []string
			for _, pod := range lost {
				got = append(got, pod.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if wait != c.wait {
				t.Errorf("waits %s, not %s", wait, c.wait)
			}
		})
	}
}

func TestWhoIsOfACohort(t *testing.T) {
	unowned := func(pod *corev1.Pod) { pod.OwnerReferences = nil }
	by := func(apiVersion, kind string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "c", Controller: new(true)}}
		}
	}
	for rule, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"an engine of a clique":                       {func(*corev1.Pod) {}, true},
		"not a pod that nobody made":                  {unowned, false},
		"not a pod of another workload":               {by("apps/v1", "ReplicaSet"), false},
		"not a pod of a kind that is named like it":   {by("example.com/v1", "PodClique"), false},
		"not an engine without a failover":            {label("nvidia.com/dynamo-failover-engine-group-member", ""), false},
		"not a pod that says it is none":              {label("nvidia.com/dynamo-failover-engine-group-member", "false"), false},
		"not a pod without a graph":                   {label("nvidia.com/dynamo-graph-deployment-name", ""), false},
		"not a pod without a replica of its group":    {label("grove.io/podcliquescalinggroup-replica-index", ""), false},
		"not a pod of a Grove that does not count it": {label("grove.io/podclique-pod-index", ""), false},
	} {
		t.Run(rule, func(t *testing.T) {
			pod := engine("p", c.change)
			if _, got := Of(&pod); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}

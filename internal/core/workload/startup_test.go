package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestStartup(t *testing.T) {
	zero := time.Date(2026, 11, 17, 8, 0, 0, 0, time.UTC)
	at := func(seconds int) metav1.Time { return metav1.NewTime(zero.Add(time.Duration(seconds) * time.Second)) }
	// A pod is made at a second, gets a node at another and is ready at a third.
	pod := func(made, scheduled, ready int) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(made)}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}}
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(ready)},
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(scheduled)},
		}
		return p
	}
	changed := func(p corev1.Pod, change func(*corev1.Pod)) corev1.Pod { change(&p); return p }
	many := func(n, took int) (all []corev1.Pod) {
		for i := range n {
			all = append(all, pod(i, i, i+took))
		}
		return all
	}
	for _, x := range []struct {
		rule string
		pods []corev1.Pod
		want *v1alpha1.StartupTimes
	}{
		{"no pod, no time", nil, nil},
		{"one tells", []corev1.Pod{pod(0, 0, 40)}, &v1alpha1.StartupTimes{P50Seconds: 40, P95Seconds: 40, Samples: 1}},
		{"waiting for a node is no part", []corev1.Pod{pod(0, 600, 640)}, &v1alpha1.StartupTimes{P50Seconds: 40, P95Seconds: 40, Samples: 1}},
		{"who does not say when it got a node counts from the beginning", []corev1.Pod{changed(pod(0, 0, 40), func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:1] })},
			&v1alpha1.StartupTimes{P50Seconds: 40, P95Seconds: 40, Samples: 1}},
		{"at once is a second", []corev1.Pod{pod(0, 0, 0)}, &v1alpha1.StartupTimes{P50Seconds: 1, P95Seconds: 1, Samples: 1}},
		{"half are no slower than p50, all but one of twenty than p95", append(many(19, 30), pod(0, 0, 90)), &v1alpha1.StartupTimes{P50Seconds: 30, P95Seconds: 30, Samples: 20}},
		{"two of twenty are p95", append(many(18, 30), pod(0, 0, 90), pod(0, 0, 80)), &v1alpha1.StartupTimes{P50Seconds: 30, P95Seconds: 80, Samples: 20}},
		{"only the newest twenty", append(many(10, 900), func() (late []corev1.Pod) {
			for i := range 20 {
				late = append(late, pod(100+i, 100+i, 120+i))
			}
			return late
		}()...), &v1alpha1.StartupTimes{P50Seconds: 20, P95Seconds: 20, Samples: 20}},
		{"who is not ready yet tells nothing", []corev1.Pod{changed(pod(0, 0, 40), func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })}, nil},
		{"nor who was started again", []corev1.Pod{changed(pod(0, 0, 40), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 })}, nil},
		{"nor who ended before", []corev1.Pod{changed(pod(0, 0, 40), func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{}
		})}, nil},
		{"nor who was unready for a while, days after its start", []corev1.Pod{pod(0, 0, 86400)}, nil},
		{"nor whose clocks disagree", []corev1.Pod{pod(0, 50, 40)}, nil},
	} {
		t.Run(x.rule, func(t *testing.T) {
			if diff := cmp.Diff(x.want, Startup(x.pods)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

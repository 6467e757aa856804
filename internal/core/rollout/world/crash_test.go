package world

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestAttention: the looks are some seconds after the first, and so is the last progress.
func TestAttention(t *testing.T) {
	begin := time.Unix(10000, 0)
	for name, c := range map[string]struct {
		looks      []int
		progressed int
		want       int
	}{
		"the first":                                    {[]int{0}, 0, 0},
		"of a rollout that begins before it":           {[]int{0}, -600, 0},
		"without a break":                              {[]int{0, 1, 30, 90}, 0, 0},
		"a break counts as a minute":                   {[]int{0, 1, 601}, 0, 540},
		"a break is over some time":                    {[]int{0, 600, 601, 602}, 0, 540},
		"looks that are far apart add up":              {[]int{0, 300, 600, 900}, 0, 720},
		"what was before the last progress is no more": {[]int{0, 30, 60, 90, 120, 3600}, 90, 90 + 3480 - 60},
	} {
		t.Run(name, func(t *testing.T) {
			var a Attention
			after := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
			for _, at := range c.looks {
				st := &v1alpha1.RolloutStatus{Target: "b", ProgressedAt: new(metav1.NewTime(after(min(at, c.progressed))))}
				if at >= c.progressed {
					st.Generations = []v1alpha1.RolloutGeneration{{ID: "b", Roles: map[string]v1alpha1.RolloutReplicas{"decode": {Replicas: 1, Routable: 1}}}}
				}
				a = a.Looked(after(at), st, nil)
			}
			if got := int(a.Since.Sub(begin) / time.Second); got != c.want {
				t.Errorf("since second %d, want %d", got, c.want)
			}
		})
	}
}

// TestCrashLog: each step is a state of one pod, a minute after the one before.
func TestCrashLog(t *testing.T) {
	begin := time.Unix(10000, 0)
	type state struct {
		ready bool
		// before is the container that ended before the one that runs, or that has ended
		// as well.
		before, ended    string
		waiting, leaving bool
	}
	up, again := state{ready: true}, state{ready: true, before: "1"}
	for name, c := range map[string]struct {
		states []state
		// want are the minutes at which it crashed.
		want []int
	}{
		"none":             {[]state{up, up}, nil},
		"a restart is one": {[]state{up, again}, []int{1}},
		"an end is one, and its restart no other":      {[]state{up, {ended: "1"}, again}, []int{1}},
		"a pause before the restart is no other":       {[]state{up, {ended: "1"}, {before: "1", waiting: true}, again}, []int{1}},
		"the next is another":                          {[]state{up, again, {before: "1", ended: "2"}, {before: "2"}}, []int{1, 2}},
		"what never was ready has not served":          {[]state{{}, {before: "1"}, {before: "2"}}, nil},
		"what crashed before it served does not count": {[]state{{}, {before: "1"}, again, {before: "1", ended: "2"}}, []int{3}},
		"what crashed before the first look does not":  {[]state{again, again}, nil},
		"what is told to end does not crash":           {[]state{up, {ended: "1", leaving: true}}, nil},
		"after ten minutes it does not count":          {[]state{up, again, again, again, again, again, again, again, again, again, again, again}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log CrashLog
			for i, s := range c.states {
				now := begin.Add(time.Duration(i) * time.Minute)
				p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Labels: map[string]string{v1alpha1.LabelGeneration: "aa", v1alpha1.LabelComponent: "decode"}}}
				status := corev1.ContainerStatus{Name: "main"}
				if s.before != "" {
					status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: s.before}
				}
				switch {
				case s.ended != "":
					status.State.Terminated = &corev1.ContainerStateTerminated{ContainerID: s.ended}
				case s.waiting:
					status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
				default:
					status.State.Running = &corev1.ContainerStateRunning{}
				}
				if s.ready {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
				if s.leaving {
					p.DeletionTimestamp = new(metav1.NewTime(now))
				}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{status}
				log = log.Seen([]corev1.Pod{p}, now)
			}
			var got []int
			for _, crash := range log.Crashes() {
				got = append(got, int(crash.At.Sub(begin)/time.Minute))
				if crash.Generation != "aa" || crash.Service != "decode" || crash.Pod != "p" {
					t.Errorf("%+v", crash)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

package fakegrove

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newWorld returns a set `chat` of a clique `web` with two pods, and of a scaling group `w` with two replicas of a leader
// that waits for its worker; groups and cliques exist, pods do not.
func newWorld() *world {
	clique := func(name string, replicas int32, startsAfter ...string) *grovev1alpha1.PodCliqueTemplateSpec {
		return &grovev1alpha1.PodCliqueTemplateSpec{Name: name, Spec: grovev1alpha1.PodCliqueSpec{
			RoleName: name, Replicas: replicas, MinAvailable: new(int32(1)), StartsAfter: startsAfter,
			PodSpec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{{Name: "OWN"}}}}},
		}}
	}
	w := &world{
		set: &grovev1alpha1.PodCliqueSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "llm", Name: "chat"},
			Spec: grovev1alpha1.PodCliqueSetSpec{Replicas: 1, Template: grovev1alpha1.PodCliqueSetTemplateSpec{
				StartupType: new(grovev1alpha1.CliqueStartupTypeExplicit),
				Cliques:     []*grovev1alpha1.PodCliqueTemplateSpec{clique("web", 2), clique("ldr", 1, "wkr"), clique("wkr", 1)},
				PodCliqueScalingGroupConfigs: []grovev1alpha1.PodCliqueScalingGroupConfig{
					{Name: "w", CliqueNames: []string{"ldr", "wkr"}, Replicas: new(int32(2)), MinAvailable: new(int32(1))},
				},
			}},
		},
		groups:  map[string]*grovev1alpha1.PodCliqueScalingGroup{},
		cliques: map[string]*grovev1alpha1.PodClique{},
		pods:    map[string][]*corev1.Pod{},
	}
	w.settle()
	return w
}

// settle makes the groups and cliques that are wanted.
func (w *world) settle() {
	for _, group := range w.wantGroups() {
		w.groups[group.Name] = group
	}
	cliques := map[string]*grovev1alpha1.PodClique{}
	for _, clique := range w.wantCliques() {
		cliques[clique.Name] = clique
	}
	w.cliques = cliques
}

// run makes the pods that a pass creates, takes those away that it removes, and makes the rest ready. It returns the
// names of both.
func (w *world) run() (created, removed []string) {
	s := w.next()
	for _, pod := range s.remove {
		removed = append(removed, pod.Name)
		name := pod.Labels[common.LabelPodClique]
		w.pods[name] = slices.DeleteFunc(w.pods[name], func(p *corev1.Pod) bool { return p.Name == pod.Name })
	}
	for _, pod := range s.create {
		created = append(created, pod.Name)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		pod.Spec.NodeName = "node"
		name := pod.Labels[common.LabelPodClique]
		w.pods[name] = append(w.pods[name], pod)
	}
	slices.Sort(created)
	slices.Sort(removed)
	return created, removed
}

// finish runs passes until nothing is left to do and returns what each removed.
func (w *world) finish(t *testing.T) [][]string {
	t.Helper()
	var all [][]string
	for range 20 {
		w.settle()
		created, removed := w.run()
		if len(created)+len(removed) == 0 {
			return all
		}
		if removed != nil {
			all = append(all, removed)
		}
	}
	t.Fatal("the world does not come to rest")
	return nil
}

// podNames names all pods that there are.
func (w *world) podNames() []string {
	var names []string
	for _, pods := range w.pods {
		for _, pod := range pods {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestACliqueIsMadeWithOneAtLeast(t *testing.T) {
	w := newWorld()
	w.set.Spec.Template.Cliques[0].Spec.Replicas = 0
	w.cliques = map[string]*grovev1alpha1.PodClique{}
	w.settle()
	web := w.cliques["chat-0-web"]
	if web.Spec.Replicas != 1 {
		t.Errorf("%d replicas of a clique that is made", web.Spec.Replicas)
	}
	web.Spec.Replicas = 0 // it is scaled
	w.settle()
	if n := w.cliques["chat-0-web"].Spec.Replicas; n != 0 {
		t.Errorf("%d replicas of a clique that was told to have none", n)
	}
}

func TestNothingComesOfAGroupOfNone(t *testing.T) {
	w := newWorld()
	if err := admitted(w.set); err != nil {
		t.Error(err)
	}
	w.set.Spec.Template.PodCliqueScalingGroupConfigs[0].Replicas = new(int32(0))
	if admitted(w.set) == nil {
		t.Error("it is admitted")
	}
}

func TestPodsStartInTheOrderOfTheirCliques(t *testing.T) {
	w := newWorld()
	for i, want := range [][]string{
		{"chat-0-w-0-wkr-0", "chat-0-w-1-wkr-0", "chat-0-web-0", "chat-0-web-1"},
		{"chat-0-w-0-ldr-0", "chat-0-w-1-ldr-0"},
		nil,
	} {
		created, removed := w.run()
		if diff := cmp.Diff(want, created); diff != "" || removed != nil {
			t.Errorf("pass %d removes %q and creates (-want +got):\n%s", i, removed, diff)
		}
	}
}

func TestOneCliqueAfterTheOtherIfTheSetSaysSo(t *testing.T) {
	w := newWorld()
	w.set.Spec.Template.StartupType = new(grovev1alpha1.CliqueStartupTypeInOrder)
	w.settle()
	for i, want := range [][]string{
		{"chat-0-web-0", "chat-0-web-1"},
		{"chat-0-w-0-ldr-0", "chat-0-w-1-ldr-0"},
		{"chat-0-w-0-wkr-0", "chat-0-w-1-wkr-0"},
	} {
		if created, _ := w.run(); !cmp.Equal(want, created) {
			t.Errorf("pass %d creates %q, want %q", i, created, want)
		}
	}
}

func TestChanges(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*world)
		removed [][]string
		left    []string
	}{
		"a new template replaces one clique after the other, its pods one by one and a group's replica as a whole": {
			change: func(w *world) {
				for _, clique := range w.set.Spec.Template.Cliques {
					clique.Annotations = map[string]string{"restarted": "now"}
				}
			},
			removed: [][]string{
				{"chat-0-web-1"},
				{"chat-0-web-0"},
				{"chat-0-w-1-ldr-0", "chat-0-w-1-wkr-0"},
				{"chat-0-w-0-ldr-0", "chat-0-w-0-wkr-0"},
			},
			left: []string{"chat-0-w-0-ldr-0", "chat-0-w-0-wkr-0", "chat-0-w-1-ldr-0", "chat-0-w-1-wkr-0", "chat-0-web-0", "chat-0-web-1"},
		},
		"a pod that does not serve is replaced before those that do": {
			change: func(w *world) {
				w.set.Spec.Template.Cliques[0].Labels = map[string]string{"new": "label"}
				w.pods["chat-0-web"][0].Status.Conditions = nil
			},
			removed: [][]string{{"chat-0-web-0"}, {"chat-0-web-1"}},
			left:    []string{"chat-0-w-0-ldr-0", "chat-0-w-0-wkr-0", "chat-0-w-1-ldr-0", "chat-0-w-1-wkr-0", "chat-0-web-0", "chat-0-web-1"},
		},
		"a pod that ended is made again": {
			change:  func(w *world) { w.pods["chat-0-web"][1].Status.Phase = corev1.PodFailed },
			removed: [][]string{{"chat-0-web-1"}},
			left:    []string{"chat-0-w-0-ldr-0", "chat-0-w-0-wkr-0", "chat-0-w-1-ldr-0", "chat-0-w-1-wkr-0", "chat-0-web-0", "chat-0-web-1"},
		},
		"a live clique's scale counts, not the template's": {
			change: func(w *world) {
				w.cliques["chat-0-web"].Spec.Replicas = 1
				w.set.Spec.Template.Cliques[0].Spec.Replicas = 5
			},
			removed: [][]string{{"chat-0-web-1"}},
			left:    []string{"chat-0-w-0-ldr-0", "chat-0-w-0-wkr-0", "chat-0-w-1-ldr-0", "chat-0-w-1-wkr-0", "chat-0-web-0"},
		},
		"a live group's scale counts": {
			change: func(w *world) { w.groups["chat-0-w"].Spec.Replicas = 3 },
			left: []string{
				"chat-0-w-0-ldr-0", "chat-0-w-0-wkr-0", "chat-0-w-1-ldr-0", "chat-0-w-1-wkr-0",
				"chat-0-w-2-ldr-0", "chat-0-w-2-wkr-0", "chat-0-web-0", "chat-0-web-1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.finish(t)
			tc.change(w)
			if diff := cmp.Diff(tc.removed, w.finish(t)); diff != "" {
				t.Errorf("removed, pass by pass (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.left, w.podNames()); diff != "" {
				t.Errorf("pods left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodKnowsItsPlace(t *testing.T) {
	w := newWorld()
	w.finish(t)
	pod := w.pods["chat-0-w-1-ldr"][0]
	var env []string
	for _, v := range pod.Spec.Containers[0].Env {
		env = append(env, fmt.Sprintf("%s=%s", v.Name, v.Value))
	}
	want := []string{
		"GROVE_PCS_NAME=chat", "GROVE_PCS_INDEX=0", "GROVE_PCLQ_NAME=chat-0-w-1-ldr",
		"GROVE_HEADLESS_SERVICE=chat-0.llm.svc.cluster.local", "GROVE_PCLQ_POD_INDEX=0",
		"GROVE_PCSG_NAME=chat-0-w", "GROVE_PCSG_INDEX=1", "GROVE_PCSG_TEMPLATE_NUM_PODS=2",
		"OWN=",
	}
	if diff := cmp.Diff(want, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if got := pod.Spec.Hostname + "." + pod.Spec.Subdomain; got != "chat-0-w-1-ldr-0.chat-0" {
		t.Errorf("host name is %s", got)
	}
	service := w.wantServices()[0]
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			t.Errorf("Service %s selects %s=%s, the pod has %q", service.Name, key, value, pod.Labels[key])
		}
	}
}

func TestStatus(t *testing.T) {
	type counts struct{ Replicas, Ready, Updated int32 }
	for name, tc := range map[string]struct {
		change             func(*world)
		clique, group, set counts
	}{
		"everything runs": {
			change: func(*world) {},
			clique: counts{2, 2, 2}, group: counts{2, 2, 2}, set: counts{1, 1, 1},
		},
		"one pod of two is enough for a set, whose clique needs one": {
			change: func(w *world) { w.pods["chat-0-web"][0].Status.Conditions = nil },
			clique: counts{2, 1, 2}, group: counts{2, 2, 2}, set: counts{1, 1, 1},
		},
		"a group's replica without its worker is not available": {
			change: func(w *world) { w.pods["chat-0-w-1-wkr"][0].Status.Conditions = nil },
			clique: counts{2, 2, 2}, group: counts{2, 1, 2}, set: counts{1, 1, 1},
		},
		"a set needs the guaranteed replica of its group": {
			change: func(w *world) { w.pods["chat-0-w-0-wkr"][0].Status.Conditions = nil },
			clique: counts{2, 2, 2}, group: counts{2, 1, 2}, set: counts{1, 0, 1},
		},
		"a clique of an old template looks as before until its turn": {
			change: func(w *world) { w.set.Spec.Template.Cliques[0].Annotations = map[string]string{"new": "one"} },
			clique: counts{2, 2, 2}, group: counts{2, 2, 2}, set: counts{1, 1, 0},
		},
		"pods of a clique whose turn has come are not updated": {
			change: func(w *world) {
				w.set.Spec.Template.Cliques[0].Annotations = map[string]string{"new": "one"}
				w.settle()
			},
			clique: counts{2, 2, 0}, group: counts{2, 2, 2}, set: counts{1, 1, 0},
		},
		"a pod that is being deleted is gone": {
			change: func(w *world) { w.pods["chat-0-web"][0].DeletionTimestamp = new(metav1.Now()) },
			clique: counts{1, 1, 1}, group: counts{2, 2, 2}, set: counts{1, 1, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.finish(t)
			tc.change(w)
			p, _ := placeOf(w.places(), "chat-0-web")
			clique := w.cliqueStatus(p, w.cliques["chat-0-web"])
			group := w.groupStatus(w.groups["chat-0-w"])
			set := w.setStatus()
			for what, pair := range map[string][2]counts{
				"clique": {tc.clique, {clique.Replicas, clique.ReadyReplicas, clique.UpdatedReplicas}},
				"group":  {tc.group, {group.Replicas, group.AvailableReplicas, group.UpdatedReplicas}},
				"set":    {tc.set, {set.Replicas, set.AvailableReplicas, set.UpdatedReplicas}},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("status of the %s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

func TestStatusSettles(t *testing.T) {
	w := newWorld()
	w.finish(t)
	w.set.Status = w.setStatus()
	group := w.groups["chat-0-w"]
	group.Status = w.groupStatus(group)
	if diff := cmp.Diff(w.set.Status, w.setStatus()); diff != "" {
		t.Errorf("status of the set changes without cause:\n%s", diff)
	}
	if diff := cmp.Diff(group.Status, w.groupStatus(group), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("status of the group changes without cause:\n%s", diff)
	}
}

// TestAChangeIsObservedWhenItIsOver: until then the set tells of an update that has begun and not ended.
func TestAChangeIsObservedWhenItIsOver(t *testing.T) {
	w := newWorld()
	w.set.Generation, w.now = 1, time.Unix(100, 0)
	w.finish(t)
	w.set.Status = w.setStatus()
	if got := *w.set.Status.ObservedGeneration; got != 1 {
		t.Fatalf("generation %d is observed", got)
	}
	w.set.Generation, w.set.Spec.Template.Cliques[0].Annotations = 2, map[string]string{"new": "one"}
	w.settle()
	if got := revision(w.cliques["chat-0-web"]); got == (place{set: w.set}).revision() {
		t.Error("the clique is touched before the update began")
	}
	w.set.Status = w.setStatus()
	w.settle()
	if got := revision(w.cliques["chat-0-web"]); got == (place{set: w.set}).revision() {
		t.Error("the clique is touched at once")
	}
	w.now = w.now.Add(pause)
	for range 3 {
		if s := w.setStatus(); *s.ObservedGeneration != 1 || s.RollingUpdateProgress == nil || s.RollingUpdateProgress.UpdateEndedAt != nil {
			t.Fatalf("under way the status is %+v", s)
		}
		w.settle()
		w.run()
	}
	w.finish(t)
	w.set.Status = w.setStatus()
	if s := w.set.Status; *s.ObservedGeneration != 2 || s.RollingUpdateProgress.UpdateEndedAt == nil {
		t.Errorf("in the end the status is %+v", s)
	}
}

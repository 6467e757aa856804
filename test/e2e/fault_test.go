package e2e

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// aFault is something that goes wrong with a graph of one service, and the
// first cause that its status has to say.
type aFault struct {
	// service is put over a service that would just run; beside are objects of
	// the namespace, made before the graph.
	service, beside string
	// graph is put over the graph's spec.
	graph string
	// before and after do what no manifest can, around the graph's creation.
	before, after func(w world)

	reason  diagnosis.Reason
	message string
}

// TestTheFirstCauseStandsInTheStatus makes all faults at once: most of the time
// goes into waiting.
func TestTheFirstCauseStandsInTheStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.label(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: onlyNode}}, onlyLabel, "true")
	rooms := map[string]world{}
	for name, f := range faults {
		rooms[name] = w.room(name)
		rooms[name].commit(f)
	}
	exact := 0
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		t.Run(name, func(t *testing.T) {
			rooms[name].in(t).shows(faults[name])
			exact++
		})
	}
	summary.Line(t, "first causes: %d of %d faults exact", exact, len(faults))

	t.Run("what is said of a crash stands still while it goes on", func(t *testing.T) {
		room := rooms["a crash"].in(t)
		room.settled()
		before, restarts := room.graph("fault"), room.podOf("fault", "worker").Status.ContainerStatuses[0].RestartCount
		room.eventually("another crash", func(context.Context) error {
			if now := room.podOf("fault", "worker").Status.ContainerStatuses[0]; now.RestartCount <= restarts || now.State.Waiting == nil {
				return fmt.Errorf("%d restarts", now.RestartCount)
			}
			return nil
		})
		if now := room.graph("fault"); now.ResourceVersion != before.ResourceVersion {
			t.Errorf("the graph was written:\n%+v\n%+v", before.Status, now.Status)
		}
	})
	t.Run("why shows the way to it", func(t *testing.T) {
		room := rooms["a crash"].in(t)
		pod := room.podOf("fault", "worker")
		want := fmt.Sprintf(`graph fault
└─ service worker  0/1 ready
   └─ Deployment fault-worker
      └─ pod %[1]s  on %[2]s
         └─ container main
cause: ContainerCrashed: container main exited with code 3: no such model
what to do: read the container's log: kubectl logs -n %[3]s %[1]s -c main --previous
`, pod.Name, pod.Spec.NodeName, room.namespace)
		if got := room.plugin("why", "fault"); got != want {
			t.Errorf("why says:\n%s\nwant:\n%s", got, want)
		}
	})
	t.Run("no verb shows what a terminal obeys", func(t *testing.T) {
		room := rooms["a crash whose last words are for a terminal"].in(t)
		if log := room.logOf(room.podOf("fault", "worker").Name); !strings.Contains(log, "\x1b]52;c;") {
			t.Errorf("the attack does not take place: %q", log)
		}
		for _, verb := range [][]string{{"why", "fault"}, {"status", "fault"}, {"status"}, {"models"}} {
			got := room.plugin(verb...)
			if i := strings.IndexFunc(got, func(r rune) bool {
				return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
			}); i >= 0 {
				t.Errorf("%v: %q", verb, got[i:])
			}
			if verb[0] == "why" && !strings.Contains(got, "lost here") {
				t.Errorf("why says %q", got)
			}
		}
	})
	t.Run("status shows the tree", func(t *testing.T) {
		room := rooms["a crash"].in(t)
		got := room.plugin("status", "fault")
		for _, part := range []string{"fault  pending\n", "└─ worker  Deployment fault-worker  0/1 ready  (container main exited with code 3: no such model)\n", room.podOf("fault", "worker").Name} {
			if !strings.Contains(got, part) {
				t.Errorf("status lacks %q:\n%s", part, got)
			}
		}
	})
}

// room is a namespace for one of several things that a test does.
func (w world) room(name string) world {
	w.Helper()
	sum := sha1.Sum([]byte(w.Name() + name))
	w.namespace = "f-" + hex.EncodeToString(sum[:4])
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	w.create(namespace)
	w.Cleanup(func() {
		if err := w.cluster.Client.Delete(context.Background(), namespace); err != nil {
			w.Errorf("delete namespace: %v", err)
		}
	})
	return w
}

// in is the world as a part of a test sees it, with patience of its own.
func (w world) in(t *testing.T) world {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	w.T, w.ctx = t, ctx
	return w
}

// commit makes a fault happen.
func (w world) commit(f aFault) {
	w.Helper()
	if f.before != nil {
		f.before(w)
	}
	w.applyText(f.beside)
	object := map[string]any{}
	w.parse(`
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: fault}
spec:
  services:
    worker:
      extraPodSpec:
        terminationGracePeriodSeconds: 1
        mainContainer:
          image: dynamo-mocker:dev
          args: [sleep infinity]
`, &object)
	spec := object["spec"].(map[string]any)
	over(spec, w.parsed(f.graph))
	over(spec["services"].(map[string]any)["worker"].(map[string]any), w.parsed(f.service))
	text, err := yaml.Marshal(object)
	if err != nil {
		w.Fatal(err)
	}
	w.applyText(string(text))
	if f.after != nil {
		f.after(w)
	}
}

func (w world) applyText(text string) {
	w.Helper()
	objects, err := w.cluster.Decode(strings.NewReader(text), w.namespace)
	if err != nil {
		w.Fatalf("%s: %v", text, err)
	}
	if err := w.cluster.Apply(w.ctx, objects); err != nil {
		w.Fatalf("%s: %v", text, err)
	}
}

func (w world) parse(text string, into any) {
	w.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		w.Fatalf("%s: %v", text, err)
	}
}

func (w world) parsed(text string) map[string]any {
	w.Helper()
	m := map[string]any{}
	w.parse(text, &m)
	return m
}

// over puts one tree over another.
func over(below, above map[string]any) {
	for key, value := range above {
		a, isMap := value.(map[string]any)
		if b, both := below[key].(map[string]any); isMap && both {
			over(b, a)
			continue
		}
		below[key] = value
	}
}

// shows waits for a fault's cause in the graph, its service and its component.
func (w world) shows(f aFault) {
	w.Helper()
	dgd, dcd := &v1alpha1.DynamoGraphDeployment{}, &v1alpha1.DynamoComponentDeployment{}
	w.eventually("the first cause", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("fault"), dgd); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
		if f.reason == "" { // no fault
			if ready == nil || ready.Status != metav1.ConditionTrue {
				return fmt.Errorf("condition %+v", ready)
			}
			return nil
		}
		reason := string(f.reason)
		if !f.reason.Fault() {
			reason = v1alpha1.ReasonServicesNotReady
		}
		if ready == nil || ready.Reason != reason || counted(ready.Message) != "worker: "+f.message {
			return fmt.Errorf("condition %+v, want %s: %s", ready, reason, f.message)
		}
		if got := counted(dgd.Status.Services["worker"].Message); got != f.message {
			return fmt.Errorf("the service says %q", got)
		}
		if dgd.Annotations[v1alpha1.AnnotationWorkloadProvider] == v1alpha1.WorkloadProviderGrove {
			return nil // where there are no components
		}
		if err := w.cluster.Client.Get(ctx, w.key("fault-worker"), dcd); err != nil {
			return err
		}
		available := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
		if f.reason.Fault() && (available == nil || available.Reason != string(f.reason) || counted(available.Message) != f.message) {
			return fmt.Errorf("the component says %+v", available)
		}
		return nil
	})
}

var (
	nodes   = regexp.MustCompile(`\b0 of \d+ nodes fit: `)
	numbers = regexp.MustCompile(`^\d+ `)
)

// counted leaves out of what a scheduler says how many nodes there are, and
// those that are other tests'.
func counted(message string) string {
	at := nodes.FindStringIndex(message)
	if at == nil {
		return message
	}
	var whys []string
	for why := range strings.SplitSeq(message[at[1]:], ", ") {
		if !strings.Contains(why, "untolerated taint") && !strings.Contains(why, "were unschedulable") {
			whys = append(whys, numbers.ReplaceAllString(why, ""))
		}
	}
	slices.Sort(whys)
	return message[:at[0]] + "0 nodes fit: " + strings.Join(whys, ", ")
}

// plugin runs the command line beside the operator.
func (w world) plugin(args ...string) string {
	w.Helper()
	command := exec.CommandContext(w.ctx, filepath.Join(binDir, "kubectl-dynamo"), append(args, "-n", w.namespace)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.cluster.Kubeconfig)
	output, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("kubectl dynamo %v: %v: %s", args, err, output)
	}
	return string(output)
}

// logOf is a container's log as it was written.
func (w world) logOf(pod string) string {
	w.Helper()
	text, err := w.cluster.Kubectl(w.ctx, nil, "logs", "--namespace", w.namespace, pod, "--container", "main", "--previous")
	if err != nil {
		w.Fatal(err)
	}
	return text
}

// label labels an object that others may label too.
func (w world) label(object client.Object, key, value string) {
	w.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	w.eventually("a label to be taken", func(ctx context.Context) error {
		return w.cluster.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// pod waits for the worker's pod to be as asked for, and changes it.
func (w world) pod(is func(corev1.Pod) bool, change func(*corev1.Pod) error) {
	w.Helper()
	w.eventually("the pod", func(ctx context.Context) error {
		pods := w.pods(ctx)
		i := slices.IndexFunc(pods, is)
		if i < 0 {
			return errors.New("not there yet")
		}
		return change(&pods[i])
	})
}

func (w world) node(name, resources string) {
	w.Helper()
	w.applyText(fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {fault: %[1]s}}
spec: {taints: [{key: fault, effect: NoSchedule}]}
`, name))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Cleanup(func() {
		if err := client.IgnoreNotFound(w.cluster.Client.Delete(context.Background(), node)); err != nil {
			w.Errorf("delete node: %v", err)
		}
	})
	w.eventually("the node to be ready", func(ctx context.Context) error { return w.beat(ctx, name, resources) })
}

// beat is a sign of life of a node that nobody plays.
func (w world) beat(ctx context.Context, name, resources string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	status := fmt.Sprintf(`{"status":{"capacity":%[1]s,"allocatable":%[1]s,"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%[2]q,"lastTransitionTime":%[2]q}]}}`,
		resources, metav1.Now().UTC().Format("2006-01-02T15:04:05Z"))
	return w.cluster.Client.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(status)))
}

package node

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/record"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/worker"
)

// agent is an agent of two nodes on an API without controllers. Its pods use
// images that nobody plays, so nothing is executed.
type agent struct {
	t      *testing.T
	client *fake.Clientset
	pods   *pods
	dir    string
	stop   func()
}

func start(t *testing.T, dir string, objects ...runtime.Object) *agent {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, client: fake.NewClientset(objects...), dir: dir}
	ctx, cancel := context.WithCancel(t.Context())
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	f := newFleet(a.client, 2, 8, 10250)
	a.pods = newPods(hosts(Config{Dir: dir, Subnet: 17, APIServerURL: "https://127.0.0.1:6443"}, a.client, broadcaster, f))
	if err := follow(ctx, a.client, metadatafake.NewSimpleMetadataClient(scheme), f, a.pods); err != nil {
		t.Fatal(err)
	}
	a.stop = func() {
		cancel()
		a.pods.shutdown()
		broadcaster.Shutdown()
	}
	t.Cleanup(func() { a.stop() })
	return a
}

func bound(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: "node-0", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
}

func (a *agent) create(pod *corev1.Pod) {
	a.t.Helper()
	if _, err := a.client.CoreV1().Pods(pod.Namespace).Create(a.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) get(name string) *corev1.Pod {
	a.t.Helper()
	pod, err := a.client.CoreV1().Pods("ns").Get(a.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return pod
}

func (a *agent) eventually(what string, is func() bool) {
	a.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatalf("never: %s", what)
		}
	}
}

func (a *agent) lose(lost bool) {
	a.t.Helper()
	value := "null"
	if lost {
		value = `"true"`
	}
	patch := `{"metadata":{"annotations":{"` + LostAnnotation + `":` + value + `}}}`
	if _, err := a.client.CoreV1().Nodes().Patch(a.t.Context(), "node-0", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) ready(name string) bool {
	pod := a.get(name)
	if pod == nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (a *agent) works() int {
	a.pods.mu.Lock()
	defer a.pods.mu.Unlock()
	return len(a.pods.running)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestTheAgentOffersItsNodes(t *testing.T) {
	a := start(t, t.TempDir())
	nodes, err := a.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range nodes.Items {
		gpus := n.Status.Allocatable["nvidia.com/gpu"]
		got[n.Name] = n.Labels["nvidia.com/gpu.count"] + " " + gpus.String() + " " + n.Labels[corev1.LabelHostname]
	}
	if diff := cmp.Diff(map[string]string{"node-0": "8 8 node-0", "node-1": "8 8 node-1"}, got); diff != "" {
		t.Error(diff)
	}
	a.eventually("both nodes have a lease", func() bool {
		leases, err := a.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(leases.Items) == 2
	})
}

func TestAPodLivesAndDies(t *testing.T) {
	a := start(t, t.TempDir())
	pod := bound("p")
	a.create(pod)
	a.eventually("the pod is ready", func() bool { return a.ready("p") })
	folder := worker.Folder(a.dir, pod)
	if !exists(folder) {
		t.Fatalf("no folder %s", folder)
	}
	if host, err := a.pods.Host("ns", "p"); err != nil || host != "127.17.0.2" {
		t.Errorf("host %q, %v", host, err)
	}
	if err := a.client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.eventually("nothing is left of the pod", func() bool { return a.works() == 0 && !exists(folder) })
	if _, err := a.pods.Host("ns", "p"); err == nil {
		t.Error("a deleted pod has a host")
	}
}

func TestPodsOfOtherNodesAreNotOurs(t *testing.T) {
	a := start(t, t.TempDir())
	foreign := bound("foreign")
	foreign.Spec.NodeName = "elsewhere"
	a.create(foreign)
	a.create(bound("ours"))
	a.eventually("ours is ready", func() bool { return a.ready("ours") })
	if got := a.works(); got != 1 {
		t.Errorf("%d workers", got)
	}
}

func TestALostNode(t *testing.T) {
	a := start(t, t.TempDir())
	a.create(bound("stays"))
	a.create(bound("goes"))
	a.eventually("both are ready", func() bool { return a.ready("stays") && a.ready("goes") })
	goes := worker.Folder(a.dir, bound("goes"))

	a.lose(true)
	a.eventually("nothing runs", func() bool { return a.works() == 0 })
	if !a.ready("stays") {
		t.Error("a lost node cannot report that its pods are not ready")
	}
	if err := a.client.CoreV1().Pods("ns").Delete(t.Context(), "goes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.create(bound("late"))

	a.lose(false)
	a.eventually("what is still there runs again, and what came meanwhile", func() bool {
		pod := a.get("stays")
		return a.works() == 2 && a.ready("late") && a.ready("stays") && pod.Status.ContainerStatuses[0].RestartCount == 1
	})
	a.eventually("what was deleted is cleaned up", func() bool { return !exists(goes) })
}

func TestARestartedAgentKeepsWhatIsThereAndSweepsTheRest(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	first.create(bound("p"))
	first.create(bound("q"))
	first.eventually("both are ready", func() bool { return first.ready("p") && first.ready("q") })
	p, q := first.get("p"), first.get("q")
	first.stop()

	stray := filepath.Join(dir, "pods", "ns_gone_uid-gone")
	if err := os.MkdirAll(stray, 0o755); err != nil {
		t.Fatal(err)
	}
	second := start(t, dir, p, q)
	second.eventually("the pods run again", func() bool {
		return second.ready("p") && second.get("p").Status.ContainerStatuses[0].RestartCount == 1 &&
			second.ready("q") && second.get("q").Status.ContainerStatuses[0].RestartCount == 1
	})
	if got, want := second.get("p").Status.PodIP, p.Status.PodIP; got != want {
		t.Errorf("address %s, want %s", got, want)
	}
	if exists(stray) {
		t.Error("the folder of a pod that is gone is still there")
	}
}

func TestReferences(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "b"}}}}}}},
		},
		InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}}},
		Containers:     []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "d"}}}}}}},
	}}
	want := map[reference]bool{
		{kindConfigMap, "ns", "a"}: true, {kindSecret, "ns", "b"}: true,
		{kindSecret, "ns", "c"}: true, {kindConfigMap, "ns", "d"}: true,
	}
	if diff := cmp.Diff(want, references(pod), cmp.AllowUnexported(reference{})); diff != "" {
		t.Error(diff)
	}
}

func TestWhatSomebodySaysOfANodeStays(t *testing.T) {
	client := fake.NewClientset()
	f := newFleet(client, 1, 8, 10250)
	if err := f.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Get(t.Context(), "node-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Labels[corev1.LabelArchStable], node.Labels["nvidia.com/gpu.product"] = "arm64", "NVIDIA-GB200"
	delete(node.Labels, "nvidia.com/gpu.family")
	node.Status.Capacity, node.Status.Allocatable = node.Status.Capacity.DeepCopy(), node.Status.Allocatable.DeepCopy()
	for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		list["vpc.amazonaws.com/efa"] = resource.MustParse("32")
		delete(list, corev1.ResourceCPU)
	}
	if f.seen["node-0"], err = nodes.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.post(t.Context(), "node-0")
	got := f.node("node-0")
	for key, want := range map[string]string{corev1.LabelArchStable: "arm64", "nvidia.com/gpu.product": "NVIDIA-GB200", "nvidia.com/gpu.family": "hopper"} {
		if got.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, got.Labels[key], want)
		}
	}
	for name, want := range map[corev1.ResourceName]string{"vpc.amazonaws.com/efa": "32", corev1.ResourceCPU: "192"} {
		if quantity := got.Status.Allocatable[name]; quantity.String() != want {
			t.Errorf("%s of %s, want %s", quantity.String(), name, want)
		}
	}
	client.ClearActions()
	f.post(t.Context(), "node-0")
	if actions := client.Actions(); len(actions) > 0 {
		t.Errorf("a node that is as it should be is written: %v", actions)
	}
}

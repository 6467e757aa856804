package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

var (
	leaderWorkerSets = schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}
	podCliqueSets    = schema.GroupVersionResource{Group: "grove.io", Version: "v1alpha1", Resource: "podcliquesets"}
	podCliques       = podCliqueSets.GroupVersion().WithResource("podcliques")
	scalingGroups    = podCliqueSets.GroupVersion().WithResource("podcliquescalinggroups")
)

const pair = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: %s}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    workerTemplate:
      spec:
        schedulerName: volcano
        terminationGracePeriodSeconds: 1
        containers: [{name: main, image: dynamo-vllm, command: [sh, -c, sleep infinity]}]
`

const chat = `
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: chat}
spec:
  replicas: 1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
    - name: web
      spec: &clique
        roleName: web
        replicas: 1
        podSpec:
          terminationGracePeriodSeconds: 1
          containers: [{name: main, image: dynamo-frontend, command: [sh, -c, sleep infinity]}]
    - name: ldr
      spec: {<<: *clique, roleName: ldr, startsAfter: [wkr]}
    - name: wkr
      spec: {<<: *clique, roleName: wkr, replicas: 2}
    podCliqueScalingGroups:
    - {name: group, cliqueNames: [ldr, wkr]}
`

// TestAddOns uses one cluster for all of them: what one add-on brings must not disturb another.
func TestAddOns(t *testing.T) {
	c := newCluster(t, "c").up(t, "--nodes=2", "--with=lws,volcano,grove", "--with=inference,istio")

	t.Run("kinds are served", func(t *testing.T) {
		for version, kind := range map[string]string{
			"scheduling.volcano.sh/v1beta1":  "podgroups",
			"networking.istio.io/v1":         "virtualservices",
			"inference.networking.k8s.io/v1": "inferencepools",
			"grove.io/v1alpha1":              "podcliquesets",
		} {
			served, err := c.client(t).Discovery().ServerResourcesForGroupVersion(version)
			if err != nil {
				t.Error(err)
				continue
			}
			if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == kind }) {
				t.Errorf("%s has no %s", version, kind)
			}
		}
	})
	t.Run("an unknown add-on is refused", func(t *testing.T) {
		if out, err := c.run("up", "--detach", "--with=knative"); err == nil || !strings.Contains(out, "volcano") {
			t.Errorf("up --with=knative = %v, want an error that lists the add-ons:\n%s", err, out)
		}
	})
	t.Run("a LeaderWorkerSet gets a leader that its worker finds", func(t *testing.T) {
		ns := newNamespace(t, c.client(t))
		c.create(t, leaderWorkerSets, ns, fmt.Sprintf(pair, "pair"))
		c.awaitAvailable(t, ns, "pair")
		worker, err := c.client(t).CoreV1().Pods(ns).Get(t.Context(), "pair-0-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		// The variable is written by the webhook of pods.
		first := worker.Spec.Containers[0].Env[0]
		if first.Name != "LWS_LEADER_ADDRESS" {
			t.Fatalf("first variable of the worker is %s", first.Name)
		}
		c.expectReached(t, first.Value, ns, "pair-0")
	})
	t.Run("a killed controller comes back", func(t *testing.T) {
		before := c.kill(t, "lws-controller")
		eventually(t, func(context.Context) error {
			if now := c.component(t, "lws-controller"); now.Restarts <= before.Restarts || now.PID == 0 {
				return fmt.Errorf("lws-controller has not been restarted: %+v", now)
			}
			out, err := c.run("status")
			if err != nil {
				return fmt.Errorf("status: %w\n%s", err, out)
			}
			return nil
		})
		ns := newNamespace(t, c.client(t))
		c.create(t, leaderWorkerSets, ns, fmt.Sprintf(pair, "later"))
		c.awaitAvailable(t, ns, "later")
	})
	t.Run("a PodCliqueSet gets cliques, a group and pods", func(t *testing.T) {
		ns := newNamespace(t, c.client(t))
		c.create(t, podCliqueSets, ns, chat)
		c.awaitStatus(t, podCliques, ns, "chat-0-web", map[string]int64{
			"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "scheduledReplicas": 1, "observedGeneration": 1,
		})
		c.awaitStatus(t, scalingGroups, ns, "chat-0-group", map[string]int64{
			"replicas": 1, "availableReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1,
		})
		c.awaitStatus(t, podCliqueSets, ns, "chat", map[string]int64{
			"replicas": 1, "availableReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1,
		})
		for _, name := range []string{"chat-0-web-0", "chat-0-group-0-ldr-0", "chat-0-group-0-wkr-0", "chat-0-group-0-wkr-1"} {
			pod, err := c.client(t).CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Error(err)
			} else if pod.Status.Phase != corev1.PodRunning {
				t.Errorf("Pod %s is %s", name, pod.Status.Phase)
			}
		}
		c.expectReached(t, fmt.Sprintf("chat-0-group-0-ldr-0.chat-0.%s.svc.cluster.local", ns), ns, "chat-0-group-0-ldr-0")

		c.scale(t, scalingGroups, ns, "chat-0-group", 2)
		c.awaitStatus(t, scalingGroups, ns, "chat-0-group", map[string]int64{"replicas": 2, "availableReplicas": 2, "observedGeneration": 2})
		c.scale(t, podCliques, ns, "chat-0-web", 0)
		c.awaitStatus(t, podCliques, ns, "chat-0-web", map[string]int64{"replicas": 0, "observedGeneration": 2})

		if err := c.dynamic(t).Resource(podCliqueSets).Namespace(ns).Delete(t.Context(), "chat", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error {
			left, err := c.client(t).CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
			if err == nil && len(left.Items) > 0 {
				err = fmt.Errorf("%d pods outlive their set", len(left.Items))
			}
			return err
		})
	})
	t.Run("a stopped cluster keeps its add-ons", func(t *testing.T) {
		c.must(t, "down")
		c.up(t)
		for _, name := range []string{"lws-controller", "grove-standin"} {
			eventually(t, func(context.Context) error {
				if c.component(t, name).PID == 0 {
					return fmt.Errorf("%s does not run", name)
				}
				return nil
			})
		}
	})
}

func (c *localCluster) dynamic(t testing.TB) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (c *localCluster) create(t *testing.T, resource schema.GroupVersionResource, ns, manifest string) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, object); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { // its webhooks may be busy
		_, err := c.dynamic(t).Resource(resource).Namespace(ns).Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (c *localCluster) scale(t *testing.T, resource schema.GroupVersionResource, ns, name string, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := c.dynamic(t).Resource(resource).Namespace(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
}

func (c *localCluster) awaitAvailable(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		set, err := c.dynamic(t).Resource(leaderWorkerSets).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
		for _, c := range conditions {
			if condition := c.(map[string]any); condition["type"] == "Available" && condition["status"] == "True" {
				return nil
			}
		}
		return fmt.Errorf("LeaderWorkerSet %s is not available: %v", name, conditions)
	})
}

// awaitStatus waits for numbers in a status; one that is left out is zero.
func (c *localCluster) awaitStatus(t *testing.T, resource schema.GroupVersionResource, ns, name string, want map[string]int64) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		object, err := c.dynamic(t).Resource(resource).Namespace(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for field, number := range want {
			if got, _, _ := unstructured.NestedInt64(object.Object, "status", field); got != number {
				return fmt.Errorf("%s %s: %s is %d, want %d", resource.Resource, name, field, got, number)
			}
		}
		return nil
	})
}

// expectReached plays a pod's process and asks for it by name, through the proxy that its peers would use.
func (c *localCluster) expectReached(t *testing.T, host, ns, pod string) {
	t.Helper()
	live, err := c.client(t).CoreV1().Pods(ns).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", strings.Replace(live.Status.PodIP, "10.", "127.", 1)+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, pod) })}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	proxy, err := url.Parse(c.state(t).ProxyURL)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}, Timeout: 10 * time.Second}
	target := fmt.Sprintf("http://%s:%d/", host, listener.Addr().(*net.TCPAddr).Port)
	eventually(t, func(context.Context) error {
		response, err := client.Get(target)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return expect(string(body), pod, err)
	})
}

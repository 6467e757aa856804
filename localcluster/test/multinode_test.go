package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// processes is one replica of vLLM over two nodes as the operator writes it for
// 1.x: the processes meet at a master, and the second node waits for it.
const processes = `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: %[1]s}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
        terminationGracePeriodSeconds: 1
        containers:
        - name: main
          image: vllm-runtime:1.3.0
          command: [python3, -m, dynamo.vllm]
          args: [--model, m, --tensor-parallel-size, "2", --distributed-executor-backend, mp, --nnodes, "2",
            --master-addr, $(LWS_LEADER_ADDRESS), --master-port, "29500", --node-rank, "0"]
          env: &env
          - {name: DYN_DISCOVERY_BACKEND, value: mem}
          - {name: DYN_SYSTEM_PORT, value: "9090"}
          - {name: DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS, value: '["generate"]'}
          - {name: DYN_NAMESPACE_WORKER_SUFFIX, value: 1f2e}
          readinessProbe: {httpGet: {path: /health, port: 9090}, periodSeconds: 1}
          resources: &one {limits: {nvidia.com/gpu: "1"}}
    workerTemplate:
      spec:
        terminationGracePeriodSeconds: 1
        initContainers:
        - name: wait-for-leader-mp
          image: vllm-runtime:1.3.0
          command: [sh, -c, 'export LEADER_HOST="${LWS_LEADER_ADDRESS}" LEADER_PORT="29500" && exec python3 /scripts/wait-for-leader.py']
        containers:
        - name: main
          image: vllm-runtime:1.3.0
          command: [python3, -m, dynamo.vllm]
          args: [--model, m, --tensor-parallel-size, "2", --distributed-executor-backend, mp, --nnodes, "2",
            --master-addr, $(LWS_LEADER_ADDRESS), --master-port, "29500", --node-rank, %[2]q, --headless]
          env: *env
          resources: *one
`

// Two nodes of one replica meet through the real LeaderWorkerSet controller and
// the cluster's names; a node with a wrong rank ends, and says why.
func TestProcessesOfOneReplicaMeetAcrossNodes(t *testing.T) {
	c := newCluster(t, "c").up(t, "--nodes=2", "--with=lws")
	client := c.client(t)
	ns := newNamespace(t, client)
	c.create(t, leaderWorkerSets, ns, fmt.Sprintf(processes, "right", "$(LWS_WORKER_INDEX)"))
	c.create(t, leaderWorkerSets, ns, fmt.Sprintf(processes, "wrong", "2"))

	eventually(t, func(ctx context.Context) error {
		for _, name := range []string{"right-0", "right-0-1"} {
			pod, err := client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !isReady(pod) {
				return fmt.Errorf("%s is %s", name, pod.Status.Phase)
			}
		}
		return nil
	})
	eventually(t, func(ctx context.Context) error {
		log, err := client.CoreV1().Pods(ns).GetLogs("right-0", &corev1.PodLogOptions{Container: "main"}).DoRaw(ctx)
		if err == nil && !strings.Contains(string(log), "the group is complete") {
			err = fmt.Errorf("the leader says\n%s", log)
		}
		return err
	})
	eventually(t, func(ctx context.Context) error {
		pod, err := client.CoreV1().Pods(ns).Get(ctx, "wrong-0-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		leader, err := client.CoreV1().Pods(ns).Get(ctx, "wrong-0", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if isReady(leader) {
			t.Fatal("a leader is ready without its follower")
		}
		log, err := client.CoreV1().Pods(ns).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "main"}).DoRaw(ctx)
		if err == nil && !strings.Contains(string(log), "rank 2 out of range: the group has ranks 0 to 1") {
			err = fmt.Errorf("the follower says\n%s", log)
		}
		return err
	})
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

package e2e

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
)

// onlyNode carries a label of these tests.
const onlyNode, onlyLabel = "node-0", "fault-only"

// annotated asks the node agent for a fault.
func annotated(key, value string) string {
	return fmt.Sprintf(`extraPodMetadata: {annotations: {localcluster.dynamo/%s: %q}}`, key, value)
}

// shell is a service whose container runs a script. It is never ready, however
// long a busy machine takes to run it.
func shell(script string) string {
	return fmt.Sprintf(`extraPodSpec: {mainContainer: {args: [%q], readinessProbe: {tcpSocket: {port: 9}}}}`, script)
}

// lostNode is what the node has that will be lost.
const lostNode = `{"cpu":"8","memory":"8Gi","pods":"9"}`

// A port on which nothing listens, asked often.
const refused = `{tcpSocket: {port: 9}, periodSeconds: 1, failureThreshold: 1, terminationGracePeriodSeconds: 1}`

var faults = map[string]aFault{
	"an image that its registry does not have": {
		service: annotated("image-pull-error", "true"),
		reason:  diagnosis.ImageNotFound, message: "image dynamo-mocker:dev does not exist in its registry",
	},
	"an image that its registry keeps to itself": {
		service: annotated("image-pull-error", "unauthorized"),
		reason:  diagnosis.ImagePullDenied, message: "the registry does not give image dynamo-mocker:dev to this namespace",
	},
	"an image whose name is none": {
		service: `extraPodSpec: {mainContainer: {image: "Engine:dev"}}`,
		reason:  diagnosis.InvalidImageName, message: `image name "Engine:dev" is not valid: repository name (library/Engine) must be lowercase`,
	},
	"a program that cannot be started": {
		service: annotated("start-error", `exec: "engine": executable file not found in $PATH`),
		reason:  diagnosis.ContainerNotStarted, message: `container main cannot be started: exec: "engine": executable file not found in $PATH`,
	},
	"a crash": {
		service: shell("echo no such model >&2; exit 3"),
		reason:  diagnosis.ContainerCrashed, message: "container main exited with code 3: no such model",
	},
	"a crash whose last words the node keeps": {
		service: `extraPodSpec: {mainContainer: {args: ["echo out of ideas; exit 4"], readinessProbe: {tcpSocket: {port: 9}}, terminationMessagePolicy: FallbackToLogsOnError}}`,
		reason:  diagnosis.ContainerCrashed, message: "container main exited with code 4: out of ideas",
	},
	"a crash whose last words are for a terminal": {
		service: shell("echo 'lost\x1b]52;c;cm0gLXJmIC8=\x07 \x1b]8;;https://evil.example\x07here\x1b[2A\u202e' >&2; exit 3"),
		reason:  diagnosis.ContainerCrashed, message: "container main exited with code 3: lost here\ufffd",
	},
	"a crash without a word": {
		service: `extraPodMetadata: {annotations: {localcluster.dynamo/crash-after: 1s, localcluster.dynamo/exit-code: "139"}}`,
		reason:  diagnosis.ContainerCrashed, message: "container main exited with code 139",
	},
	"a program that ends though it should not": {
		service: shell("true"),
		reason:  diagnosis.ContainerCrashed, message: "container main ended by itself, without an error, though it is meant to go on",
	},
	"a lack of memory": {
		service: `{extraPodMetadata: {annotations: {localcluster.dynamo/oom-after: 1s}}, extraPodSpec: {mainContainer: {resources: {limits: {memory: 2Gi}}}}}`,
		reason:  diagnosis.OutOfMemory, message: "container main was killed for lack of memory (limit 2Gi)",
	},
	"a liveness probe that fails": {
		service: `livenessProbe: ` + refused,
		reason:  diagnosis.LivenessProbeFailed, message: "container main was ended: its liveness probe (connect to :9) failed",
	},
	"a startup probe that fails": {
		service: `extraPodSpec: {mainContainer: {startupProbe: ` + refused + `}}`,
		reason:  diagnosis.StartupProbeFailed, message: "container main was ended: its startup probe (connect to :9) failed for too long",
	},
	"a readiness probe that fails": {
		service: `readinessProbe: {httpGet: {port: 9, path: /ready}, periodSeconds: 1}`,
		reason:  diagnosis.ReadinessProbeFailed, message: "container main runs, but its readiness probe (GET :9/ready) fails",
	},
	"an init container that fails": {
		service: `extraPodSpec: {initContainers: [{name: fetch, image: "dynamo-mocker:dev", command: [/bin/sh, -c, "echo no such file >&2; exit 22"]}]}`,
		reason:  diagnosis.InitContainerFailed, message: "init container fetch exited with code 22: no such file",
	},

	"an environment from a secret that is not there": {
		service: `envFromSecret: token`,
		reason:  diagnosis.SecretNotFound, message: "Secret token does not exist",
	},
	"an environment from a config map that is not there": {
		service: `extraPodSpec: {mainContainer: {envFrom: [{configMapRef: {name: settings}}]}}`,
		reason:  diagnosis.ConfigMapNotFound, message: "ConfigMap settings does not exist",
	},
	"a variable from a key that is not there": {
		beside:  `{apiVersion: v1, kind: Secret, metadata: {name: token}, stringData: {other: x}}`,
		service: `envs: [{name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: hf}}}]`,
		reason:  diagnosis.ConfigInvalid, message: "Secret token has no key hf, which container main refers to",
	},
	"a volume of a secret that is not there": {
		service: `extraPodSpec: {volumes: [{name: keys, secret: {secretName: keys}}]}`,
		reason:  diagnosis.SecretNotFound, message: "Secret keys does not exist",
	},
	"a volume of a config map that is not there": {
		service: `extraPodSpec: {volumes: [{name: files, configMap: {name: files}}]}`,
		reason:  diagnosis.ConfigMapNotFound, message: "ConfigMap files does not exist",
	},
	"a volume of a key that is not there": {
		beside:  `{apiVersion: v1, kind: ConfigMap, metadata: {name: files}, data: {a: b}}`,
		service: `extraPodSpec: {volumes: [{name: files, configMap: {name: files, items: [{key: nope, path: nope}]}}]}`,
		reason:  diagnosis.VolumeMountFailed, message: "volume files cannot be mounted: configmap references non-existent config key: nope",
	},
	"a claim that is not there": {
		service: `extraPodSpec: {volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]}`,
		reason:  diagnosis.ClaimNotFound, message: "PersistentVolumeClaim models does not exist",
	},
	"a claim of a class that is not there": {
		graph:   `pvcs: [{name: models, create: true, storageClass: imaginary, size: 1Gi, volumeAccessMode: ReadWriteMany}]`,
		service: `volumeMounts: [{name: models, mountPoint: /models}]`,
		reason:  diagnosis.StorageClassNotFound, message: "PersistentVolumeClaim models asks for StorageClass imaginary, which does not exist",
	},
	"a claim that nothing fills": {
		beside:  `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: models}, spec: {storageClassName: "", accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}`,
		service: `extraPodSpec: {volumes: [{name: models, persistentVolumeClaim: {claimName: models}}]}`,
		reason:  diagnosis.ClaimNotBound, message: "PersistentVolumeClaim models has no volume and names no StorageClass to make one",
	},

	"more GPUs than any node has": {
		service: `resources: {limits: {gpu: "9"}}`,
		reason:  diagnosis.Unschedulable, message: "needs 9 nvidia.com/gpu; 0 nodes fit: Insufficient nvidia.com/gpu",
	},
	"a node that does not exist": {
		service: `extraPodSpec: {nodeSelector: {planet: mars}}`,
		reason:  diagnosis.Unschedulable, message: "0 nodes fit: node(s) didn't match Pod's node affinity/selector",
	},
	"a group of nodes that is short by one": {
		service: `{multinode: {nodeCount: 2}, extraPodSpec: {nodeSelector: {` + onlyLabel + `: "true"}, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {nvidia.com/dynamo-component: worker}}}]}}}}`,
		reason:  diagnosis.GangIncomplete, message: "group fault-worker-0 is short by 1 of 2 pods: each 0 nodes fit: node(s) didn't match Pod's node affinity/selector, node(s) didn't match pod anti-affinity rules",
	},

	"a quota that is used up": {
		beside:  `{apiVersion: v1, kind: ResourceQuota, metadata: {name: gpus}, spec: {hard: {requests.nvidia.com/gpu: "1"}}}`,
		service: `resources: {limits: {gpu: "2"}}`,
		reason:  diagnosis.QuotaExceeded, message: "ResourceQuota gpus leaves no room: asked for requests.nvidia.com/gpu=2, used requests.nvidia.com/gpu=0 of requests.nvidia.com/gpu=1",
	},
	"a quota that wants to know more": {
		beside: `{apiVersion: v1, kind: ResourceQuota, metadata: {name: memory}, spec: {hard: {limits.memory: 1Gi}}}`,
		reason: diagnosis.QuotaExceeded, message: "ResourceQuota memory: must specify limits.memory for: main",
	},
	"a quota that is too small for a group of nodes": {
		beside:  `{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {pods: "1"}}}`,
		service: `multinode: {nodeCount: 2}`,
		reason:  diagnosis.QuotaExceeded, message: "ResourceQuota few leaves no room: asked for pods=1, used pods=1 of pods=1",
	},
	"a limit range": {
		beside:  `{apiVersion: v1, kind: LimitRange, metadata: {name: small}, spec: {limits: [{type: Container, max: {cpu: "1"}}]}}`,
		service: `resources: {limits: {cpu: "2"}}`,
		reason:  diagnosis.LimitRangeViolated, message: "a LimitRange forbids: maximum cpu usage per Container is 1, but limit is 2",
	},
	"a pod security level": {
		before: func(w world) {
			w.label(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, "pod-security.kubernetes.io/enforce", "restricted")
		},
		reason:  diagnosis.PodSecurityViolated,
		message: "the namespace's Pod Security level restricted forbids: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
	},
	"an account that is not there": {
		service: `extraPodSpec: {serviceAccountName: robot}`,
		reason:  diagnosis.ServiceAccountNotFound, message: "ServiceAccount robot does not exist",
	},
	"a priority that is not there": {
		service: `extraPodSpec: {priorityClassName: gold}`,
		reason:  diagnosis.PodRefused, message: "the API server refuses the pod: no PriorityClass with name gold was found",
	},

	"a node that runs out of memory": {
		service: annotated("never-ready", "true"),
		after: func(w world) {
			w.pod(func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }, func(p *corev1.Pod) error {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"localcluster.dynamo/evict":"memory"}}}`))
				return w.cluster.Client.Patch(w.ctx, p, patch)
			})
		},
		reason: diagnosis.Evicted, message: "its node evicted the pod: The node was low on resource: memory",
	},
	"a node that is lost": {
		before:  func(w world) { w.node("fault-lost", lostNode) },
		service: `extraPodSpec: {nodeSelector: {fault: fault-lost}, tolerations: [{operator: Exists}]}`,
		after: func(w world) { // nobody else plays this node, and it is not lost before its pod runs
			w.pod(func(p corev1.Pod) bool {
				return w.beat(w.ctx, "fault-lost", lostNode) == nil && p.Spec.NodeName != ""
			}, func(p *corev1.Pod) error {
				p.Status.Phase = corev1.PodRunning
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
				for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
					p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
				}
				return w.cluster.Client.Status().Update(w.ctx, p)
			})
		},
		reason: diagnosis.NodeLost, message: "node fault-lost does not answer",
	},
	"a pod that has to make room": {
		before:  func(w world) { w.node("fault-full", `{"cpu":"8","memory":"8Gi","pods":"9","example.com/slot":"1"}`) },
		service: `extraPodSpec: {nodeSelector: {fault: fault-full}, tolerations: [{operator: Exists}], terminationGracePeriodSeconds: 3600, mainContainer: {resources: {limits: {example.com/slot: 1}}}}`,
		after: func(w world) {
			w.pod(func(p corev1.Pod) bool { return p.Spec.NodeName != "" }, func(*corev1.Pod) error { return nil })
			w.applyText(`
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: fault-first}, value: 1000}
---
apiVersion: v1
kind: Pod
metadata: {name: first}
spec:
  priorityClassName: fault-first
  nodeSelector: {fault: fault-full}
  tolerations: [{operator: Exists}]
  containers: [{name: main, image: "dynamo-mocker:dev", resources: {limits: {example.com/slot: 1}}}]
`)
		},
		reason: diagnosis.Preempted, message: "a pod of higher priority took its place on node fault-full",
	},

	"a start that takes its time is no fault": {
		service: annotated("never-ready", "true"),
		reason:  diagnosis.Starting, message: "0 of 1 replicas available: container main is starting",
	},
	"a service of no replicas has no fault": {
		service: `replicas: 0`,
	},
}

package pod

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Where the processes of a pod that share GPU memory meet.
const (
	controlVolume = "gms-intrapod-control"
	controlPath   = "/gms-intrapod-control"
	sharedClaim   = "intrapod-shared-gpu"
)

// share lets a server hold the weights in GPU memory for the engines of its pod, and
// a second engine stand by for the first, as far as the component asks for it.
func share(s *corev1.PodSpec, c graph.Component) error {
	if !c.SharesWithinPods() {
		return nil
	}
	s.Containers = slices.Clone(s.Containers)
	for i := range s.Containers {
		if i == 0 || slices.Contains(c.GPUMemory.Clients, s.Containers[i].Name) {
			becomeClient(&s.Containers[i])
		}
	}
	s.InitContainers = append(slices.Clip(s.InitContainers), corev1.Container{
		Name: "gms-server", Image: s.Containers[0].Image,
		Command:       []string{"python3", "-m", "gpu_memory_service.cli.server"},
		Env:           []corev1.EnvVar{{Name: "GMS_SOCKET_DIR", Value: controlPath}},
		Resources:     corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: sharedClaim}}},
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		VolumeMounts:  []corev1.VolumeMount{{Name: controlVolume, MountPath: controlPath}},
	})
	s.Volumes = append(slices.Clip(s.Volumes), corev1.Volume{Name: controlVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	s.ResourceClaims = append(slices.Clip(s.ResourceClaims), corev1.PodResourceClaim{Name: sharedClaim, ResourceClaimTemplateName: new(graph.DeviceTemplate(c.Graph, c.Name))})
	tolerateGPUs(s)
	if c.Failover == nil || c.Failover.Mode != graph.SharingIntraPod {
		return nil
	}
	if c.Engine != graph.EngineVLLM {
		return fault.New(fault.Invalid, v1alpha1.ReasonValidationFailed, "failover: only vLLM engines can stand by for each other, and none was found in the command; set backendFramework")
	}
	standBy(s, c)
	return nil
}

// claimedGPUs says what pods claim by a template: they name that and not what it asks
// for, so that a change of it would replace the template alone.
func claimedGPUs(c graph.Component) string {
	return fmt.Sprintf("%d %s", c.Resources.GPUs, c.GPUMemory.DeviceClass)
}

// becomeClient swaps the GPUs of a container for the pod's claim on them.
func becomeClient(c *corev1.Container) {
	c.Resources = *c.Resources.DeepCopy()
	for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
		for name := range list {
			if graph.IsGPU(name) {
				delete(list, name)
			}
		}
	}
	c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: sharedClaim})
	c.Env = setEnv(c.Env, corev1.EnvVar{Name: "GMS_SOCKET_DIR", Value: controlPath})
	c.VolumeMounts = append(slices.Clip(c.VolumeMounts), corev1.VolumeMount{Name: controlVolume, MountPath: controlPath})
}

// gpuTaint keeps pods away from nodes with GPUs that ask for none. One whose GPUs
// are claimed does not ask for the resource that would have it tolerated.
const gpuTaint = "nvidia.com/gpu"

func tolerateGPUs(s *corev1.PodSpec) {
	toleration := corev1.Toleration{Key: gpuTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	if !slices.Contains(s.Tolerations, toleration) {
		s.Tolerations = append(slices.Clip(s.Tolerations), toleration)
	}
}

// Ports of the first of two engines in a pod; the second has the next, and meets its
// group elsewhere.
const (
	sideChannelPort = 5600
	kvEventPort     = 20080
	metricPort      = 20380
	secondMaster    = "29600"
)

// endpointHealth are variables that no engine of a pod has: none can be asked for the
// health of an endpoint while it stands by.
var endpointHealth = []string{"DYN_HEALTH_CHECK_ENABLED", "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS"}

// standBy makes two engines of the main container. The lock says which serves.
func standBy(s *corev1.PodSpec, c graph.Component) {
	main := s.Containers[0]
	var engines []corev1.Container
	for i := range int(c.Failover.Shadows) + 1 {
		one := *main.DeepCopy()
		one.Name = "engine-" + strconv.Itoa(i)
		port := PortNameSystem + "-" + strconv.Itoa(i)
		one.Ports = []corev1.ContainerPort{tcp(port, int32(PortSystem+i))}
		for _, probe := range []*corev1.Probe{one.LivenessProbe, one.ReadinessProbe, one.StartupProbe} {
			if probe != nil && probe.HTTPGet != nil && (probe.HTTPGet.Port == intstr.FromString(PortNameSystem) || probe.HTTPGet.Port == intstr.FromInt32(PortSystem)) {
				probe.HTTPGet.Port = intstr.FromString(port)
			}
		}
		one.Env = slices.DeleteFunc(one.Env, func(v corev1.EnvVar) bool { return slices.Contains(endpointHealth, v.Name) })
		one.Env = setEnv(one.Env,
			corev1.EnvVar{Name: "ENGINE_ID", Value: strconv.Itoa(i)},
			corev1.EnvVar{Name: "CONTAINER_NAME", Value: one.Name},
			corev1.EnvVar{Name: "FAILOVER_LOCK_PATH", Value: controlPath + "/failover.lock"},
			corev1.EnvVar{Name: "DYN_SYSTEM_STARTING_HEALTH_STATUS", Value: "notready"},
			corev1.EnvVar{Name: "DYN_SYSTEM_PORT", Value: strconv.Itoa(PortSystem + i)},
			corev1.EnvVar{Name: "DYN_SYSTEM_ENABLED", Value: "true"},
			corev1.EnvVar{Name: "DYN_FORWARDPASS_METRIC_PORT", Value: strconv.Itoa(metricPort + i)},
			corev1.EnvVar{Name: "DYN_VLLM_GMS_SHADOW_MODE", Value: "true"},
			corev1.EnvVar{Name: "VLLM_NIXL_SIDE_CHANNEL_PORT", Value: strconv.Itoa(sideChannelPort + i)},
			corev1.EnvVar{Name: "DYN_VLLM_KV_EVENT_PORT", Value: strconv.Itoa(kvEventPort + i)},
		)
		if c.Multinode() {
			one.Env = setEnv(one.Env, corev1.EnvVar{Name: "NNODES", Value: strconv.Itoa(int(c.Nodes))})
		}
		if i > 0 {
			one.Command, one.Args = engine.WithMasterPort(one.Command, one.Args, secondMaster)
		}
		engines = append(engines, one)
	}
	s.Containers = slices.Concat(engines, s.Containers[1:])
}

// Where pods of one node that share GPU memory meet.
const (
	hostVolume = "gms-shared"
	hostPath   = "/run/gms"
	hostMount  = "/run/gms/shared"
)

// ShareAcrossPods makes a pod part of a group that shares the memory of the GPUs of
// one rank.
func ShareAcrossPods(t *corev1.PodTemplateSpec, c graph.Component, rank int) {
	t.Annotations = join(t.Annotations, map[string]string{v1alpha1.AnnotationClaimedGPUs: claimedGPUs(c)})
	main := &t.Spec.Containers[0]
	main.Resources = *main.Resources.DeepCopy()
	for _, list := range []corev1.ResourceList{main.Resources.Limits, main.Resources.Requests} {
		for name := range list {
			if graph.IsGPU(name) {
				delete(list, name)
			}
		}
	}
	// Each group of pods has a folder of its own on the node.
	mount := corev1.VolumeMount{Name: hostVolume, MountPath: hostMount, SubPathExpr: fmt.Sprintf("$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)/rank-%d", rank)}
	main.VolumeMounts = append(slices.Clip(main.VolumeMounts), mount)
	t.Spec.InitContainers = append(slices.Clip(t.Spec.InitContainers), corev1.Container{
		Name: "fix-gms-perms", Image: main.Image,
		Command:         []string{"sh", "-c", "chmod 1777 " + hostMount},
		SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false)},
		VolumeMounts:    []corev1.VolumeMount{mount},
	})
	t.Spec.Volumes = append(slices.Clip(t.Spec.Volumes), corev1.Volume{Name: hostVolume, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: hostPath, Type: new(corev1.HostPathDirectoryOrCreate)},
	}})
	tolerateGPUs(&t.Spec)
}

// shadowMode tells engines and their server that one of them stands by.
func shadowMode(c graph.Component) []corev1.EnvVar {
	if c.Failover == nil {
		return nil
	}
	return []corev1.EnvVar{{Name: "DYN_VLLM_GMS_SHADOW_MODE", Value: "true"}}
}

// LoadingShared is a component whose engine takes its weights from a server.
func LoadingShared(c graph.Component) graph.Component {
	main := corev1.Container{}
	if c.Main != nil {
		main = *c.Main
	}
	main.Command, main.Args = engine.LoadShared(main.Command, main.Args)
	c.Main = &main
	return c
}

// SharedEngine makes an engine of a pod that shares memory with others.
func SharedEngine(t *corev1.PodTemplateSpec, c graph.Component) {
	main := &t.Spec.Containers[0]
	main.Env = slices.DeleteFunc(slices.Clone(main.Env), func(v corev1.EnvVar) bool { return v.Name == "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS" })
	main.Env = setEnv(main.Env, shadowMode(c)...)
	main.Env = setEnv(main.Env,
		fromField("ENGINE_ID", "metadata.labels['grove.io/podclique-pod-index']"),
		corev1.EnvVar{Name: "GMS_SOCKET_DIR", Value: hostMount},
		corev1.EnvVar{Name: "FAILOVER_LOCK_PATH", Value: hostMount + "/failover.lock"},
		corev1.EnvVar{Name: "DYN_SYSTEM_STARTING_HEALTH_STATUS", Value: "notready"},
	)
	if c.Failover != nil {
		t.Labels[v1alpha1.LabelEngineGroup] = "true"
		// Who fails is replaced with its whole group, not started again in it.
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
}

// WeightServer makes the server of a pod that holds the weights for engines in other
// pods. It serves nobody else, so nobody discovers it, and it is no endpoint of its model.
func WeightServer(t *corev1.PodTemplateSpec, c graph.Component) {
	for _, key := range []string{v1alpha1.LabelDiscoveryBackend, v1alpha1.LabelDiscoveryEnabled, v1alpha1.LabelBaseModelHash} {
		delete(t.Labels, key)
	}
	main := &t.Spec.Containers[0]
	main.Command, main.Args = []string{"bash", "-c"}, []string{weightServer}
	main.Env = setEnv(main.Env, shadowMode(c)...)
	main.Env = setEnv(main.Env, corev1.EnvVar{Name: "GMS_SOCKET_DIR", Value: hostMount})
	main.LivenessProbe, main.ReadinessProbe = nil, nil
	// Two sockets for each GPU: weights and caches.
	main.StartupProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{
			"sh", "-c", "test $(ls " + hostMount + "/gms_*.sock 2>/dev/null | wc -l) -ge " + strconv.Itoa(2*c.Resources.GPUs),
		}}},
		PeriodSeconds: 2, TimeoutSeconds: 2, FailureThreshold: 150,
	}
}

// weightServer clears what an earlier server left behind and takes its place.
const weightServer = "rm -f " + hostMount + "/gms_*.sock && exec python3 -m gpu_memory_service.cli.server"

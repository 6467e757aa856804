// Package pod renders the pod template of a component: the defaults of its
// role, then the platform's and the user's layers over them. It knows nothing
// of the workload that will carry the template.
package pod

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// MainContainer is the name of the container that runs the component, unless
// the user gives it another.
const MainContainer = "main"

// Platform is what the operator's configuration says to every pod.
type Platform struct {
	NATS         string
	Etcd         string
	ModelExpress string
	Prometheus   string
	// SSHSecret holds the key by which nodes of an MPI group reach each other.
	SSHSecret string
	// Account is for pods that need no account of their own; empty leaves it to
	// the cluster.
	Account string
	// PullSecrets are those of the component's namespace.
	PullSecrets snapshot.PullSecrets
}

// Template renders the pod template of a component for a place in its group of
// nodes.
func Template(c graph.Component, at engine.Group, p Platform) (corev1.PodTemplateSpec, error) {
	main := mainContainer(c, p)
	launch, err := engine.Launch(c.Engine, engine.Spec{
		Contract: c.Contract, Executor: c.Executor, WaitScript: graph.WaitScript(c.Graph),
		Command: main.Command, Args: main.Args, Env: main.Env, Image: main.Image,
		GPUs: c.Resources.GPUs, CacheDir: cacheDir(c), Group: at, SSHSecret: p.SSHSecret,
	})
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	s := spec(c, launched(main, launch), launch.Volumes)
	addFrontend(&s, c, p)
	shareMemory(&s, c)
	s.InitContainers = append(slices.Clip(s.InitContainers), launch.InitContainers...)
	s.Volumes = addVolumes(s.Volumes, launch.InitVolumes)
	if err := share(&s, c); err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	s.ServiceAccountName = cmp.Or(s.ServiceAccountName, p.Account)
	if c.Annotations[v1alpha1.AnnotationDisableImagePullSecretDiscovery] != "true" {
		addPullSecrets(&s, p.PullSecrets)
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: Labels(c), Annotations: annotations(c)},
		Spec:       s,
	}, nil
}

// launched is the main container as its engine wants it started.
func launched(main corev1.Container, l engine.Container) corev1.Container {
	main.Command, main.Args = l.Command, l.Args
	for _, v := range l.Env {
		if !slices.Contains(envNames(main.Env), v.Name) {
			main.Env = append(main.Env, v)
		}
	}
	main.VolumeMounts = addMounts(main.VolumeMounts, l.Mounts)
	if l.NoProbes {
		main.LivenessProbe, main.ReadinessProbe, main.StartupProbe = nil, l.Readiness, nil
	}
	return main
}

func envNames(env []corev1.EnvVar) []string {
	names := make([]string, len(env))
	for i, v := range env {
		names[i] = v.Name
	}
	return names
}

// cacheDir is where the user wants compiled kernels kept. An engine is told its
// own default as well: where that is depends on the user that it runs as.
func cacheDir(c graph.Component) string {
	for _, m := range c.Mounts {
		if m.CompilationCache {
			return m.Path
		}
	}
	return ""
}

// Labels are the labels of a component's pods. What the user adds cannot change
// the ones that Services and workloads select by.
func Labels(c graph.Component) map[string]string {
	selecting := map[string]string{
		v1alpha1.LabelSelector:        c.ObjectName,
		v1alpha1.LabelGraphName:       c.Graph,
		v1alpha1.LabelComponent:       c.Name,
		v1alpha1.LabelDynamoNamespace: c.NamespaceLabel,
	}
	if c.Type != "" {
		selecting[v1alpha1.LabelComponentType] = c.Type
	}
	if c.Model != "" {
		selecting[v1alpha1.LabelBaseModelHash] = graph.ModelHash(c.Model)
	}
	rules := contract.Of(c.Contract).Pods
	if rules.Discovered && c.Discovery == graph.DiscoveryKubernetes {
		selecting[v1alpha1.LabelDiscoveryBackend] = string(graph.DiscoveryKubernetes)
		selecting[v1alpha1.LabelDiscoveryEnabled] = "true"
	}
	if c.Class != "" {
		selecting[v1alpha1.LabelComponentClass] = c.Class
	}
	if c.Generation != "" {
		selecting[v1alpha1.LabelGeneration] = c.Generation
	}
	telling := map[string]string{}
	if c.SubType != "" {
		telling[v1alpha1.LabelSubComponentType] = c.SubType
	}
	if c.Metrics {
		telling[v1alpha1.LabelMetricsEnabled] = "true"
	}
	return join(telling, c.Labels, c.PodLabels, selecting)
}

// annotations leaves the operator's own switches out: they say how the workload
// is run, and a change of one must not replace pods.
func annotations(c graph.Component) map[string]string {
	joined := join(c.Annotations, c.PodAnnotations)
	for _, key := range switches {
		delete(joined, key)
	}
	if c.SharesWithinPods() {
		joined = join(joined, map[string]string{v1alpha1.AnnotationClaimedGPUs: claimedGPUs(c)})
	}
	if len(joined) == 0 {
		return nil
	}
	return joined
}

var switches = []string{
	v1alpha1.AnnotationDiscoveryBackend,
	v1alpha1.AnnotationEnableMetrics,
	v1alpha1.AnnotationDisableImagePullSecretDiscovery,
	v1alpha1.AnnotationDeploymentStrategy,
	v1alpha1.AnnotationMaxSurge,
	v1alpha1.AnnotationMaxUnavailable,
	v1alpha1.AnnotationMinReadySeconds,
}

// join unites maps, later ones winning; nil when there is nothing.
func join(layers ...map[string]string) map[string]string {
	var joined map[string]string
	for _, layer := range layers {
		for k, v := range layer {
			if joined == nil {
				joined = map[string]string{}
			}
			joined[k] = v
		}
	}
	return joined
}

func spec(c graph.Component, main corev1.Container, extra []corev1.Volume) corev1.PodSpec {
	base := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: new(gracePeriod(c.Role)),
		ServiceAccountName:            roleAccount(c.Role),
	}
	users := corev1.PodSpec{}
	if c.Pod != nil {
		users = *c.Pod
	}
	s := Overlay(base, users)
	// What the user brings stands first: pods of earlier operators have this
	// order, and another one would replace them.
	s.Volumes = addVolumes(addVolumes(users.Volumes, append(pickerVolumes(c), volumes(c)...)), extra)
	s.Containers = slices.Concat(users.Containers, []corev1.Container{main})
	if contract.Of(c.Contract).Pods.MainFirst {
		s.Containers = slices.Concat([]corev1.Container{main}, users.Containers)
	}
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(1000))}
	}
	if c.Discovery == graph.DiscoveryKubernetes {
		s.ServiceAccountName = cmp.Or(s.ServiceAccountName, graph.DiscoveryAccount(c.Graph))
	}
	return s
}

// gracePeriod is how long a pod may take to end. A picker drains the streams of
// a gateway, which take longer than a request.
func gracePeriod(role graph.Role) int64 {
	if role == graph.RoleEPP {
		return 130
	}
	return 60
}

func roleAccount(role graph.Role) string {
	switch role {
	case graph.RolePlanner:
		return PlannerAccount
	case graph.RoleEPP:
		return PickerAccount
	default:
		return ""
	}
}

// mainContainer lays the user's container over the role's. Environment, mounts
// and probes have rules of their own and so are not left to Overlay.
func mainContainer(c graph.Component, p Platform) corev1.Container {
	users := corev1.Container{}
	if c.Main != nil {
		users = *c.Main
	}
	base := yielding(roleContainer(c), users)
	main := Overlay(base, withoutOwnRules(users))
	main.Name = cmp.Or(main.Name, MainContainer)
	main.VolumeMounts = addMounts(users.VolumeMounts, append(base.VolumeMounts, mounts(c)...))
	main.Env = mergeEnv(platformEnv(p), base.Env, identityEnv(c, main.Name), drainEnv(c), users.Env, c.Env)
	if c.EnvFromSecret != "" {
		main.EnvFrom = append(slices.Clone(main.EnvFrom), corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: c.EnvFromSecret}},
		})
	}
	main.LivenessProbe = chooseProbe(chooseProbe(base.LivenessProbe, users.LivenessProbe), c.Liveness)
	main.ReadinessProbe = chooseProbe(chooseProbe(base.ReadinessProbe, users.ReadinessProbe), c.Readiness)
	main.StartupProbe = chooseProbe(base.StartupProbe, users.StartupProbe)
	main.Resources = Overlay(main.Resources, corev1.ResourceRequirements{
		Limits: c.Resources.Limits, Requests: c.Resources.Requests,
	})
	main.Resources.Claims = append(slices.Clone(main.Resources.Claims), c.Resources.Claims...)
	return main
}

// withoutOwnRules leaves out of a container what Overlay is not asked about.
func withoutOwnRules(c corev1.Container) corev1.Container {
	c.Env, c.VolumeMounts = nil, nil
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
	return c
}

// identityEnv tells a container of a pod which component of which graph it is.
func identityEnv(c graph.Component, container string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "DYN_NAMESPACE", Value: ownNamespace(c)},
		{Name: "DYN_COMPONENT", Value: c.Type},
		{Name: "DYN_PARENT_DGD_K8S_NAME", Value: c.Graph},
		{Name: "DYN_PARENT_DGD_K8S_NAMESPACE", Value: c.Namespace},
		fromField("POD_NAME", "metadata.name"),
		fromField("POD_NAMESPACE", "metadata.namespace"),
		fromField("POD_UID", "metadata.uid"),
	}
	env = append(env, generationEnv(c)...)
	if c.DiscoveryMode == graph.DiscoveryModeContainer && contract.Of(c.Contract).Pods.Discovered {
		env = append(env,
			corev1.EnvVar{Name: "DYN_KUBE_DISCOVERY_MODE", Value: string(c.DiscoveryMode)},
			corev1.EnvVar{Name: "CONTAINER_NAME", Value: container},
		)
	}
	if c.Discovery != graph.DiscoveryEtcd {
		env = append(env, corev1.EnvVar{Name: "DYN_DISCOVERY_BACKEND", Value: string(graph.DiscoveryKubernetes)})
	}
	return env
}

// ownNamespace is the Dynamo namespace that a pod is told. Workers that are told their
// generation beside it find that of their generation themselves; all others are told it.
func ownNamespace(c graph.Component) string {
	if c.Fronted() || !contract.Of(c.Contract).Pods.Generations {
		return c.RuntimeNamespace
	}
	return c.DynamoNamespace
}

// generationEnv tells workers which generation they are of, and those who look for
// workers what the Dynamo namespaces of all generations begin with. The original does
// not tell that to a frontend of another type.
func generationEnv(c graph.Component) []corev1.EnvVar {
	switch rules := contract.Of(c.Contract).Pods; {
	case !rules.Generations:
		return nil
	case c.Fronted():
		return nil // it sees its own generation alone
	case c.LooksByPrefix():
		return []corev1.EnvVar{{Name: "DYN_NAMESPACE_PREFIX", Value: c.DynamoNamespace}}
	case c.Generation != "":
		return []corev1.EnvVar{{Name: "DYN_NAMESPACE_WORKER_SUFFIX", Value: c.Generation}}
	default:
		return nil
	}
}

// leftToEnd are the seconds of its grace that a frontend does not drain in, and drainsAnyway
// those that it drains in without being told.
const (
	leftToEnd    = 10
	drainsAnyway = 5
)

// drainEnv has a frontend that leaves with its generation finish the answers that are under
// way. What was made before there was anything to roll out stays as it is: this alone must
// not replace pods.
func drainEnv(c graph.Component) []corev1.EnvVar {
	if !c.Fronted() || c.ObjectName == graph.ComponentName(c.Graph, c.Name) {
		return nil
	}
	grace := gracePeriod(c.Role)
	if c.Pod != nil && c.Pod.TerminationGracePeriodSeconds != nil {
		grace = *c.Pod.TerminationGracePeriodSeconds
	}
	if grace-leftToEnd <= drainsAnyway {
		return nil
	}
	return []corev1.EnvVar{{Name: "DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS", Value: strconv.FormatInt(grace-leftToEnd, 10)}}
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: path},
	}}
}

func platformEnv(p Platform) []corev1.EnvVar {
	all := []corev1.EnvVar{
		{Name: "NATS_SERVER", Value: p.NATS},
		{Name: "ETCD_ENDPOINTS", Value: p.Etcd},
		{Name: "MODEL_EXPRESS_URL", Value: p.ModelExpress},
		{Name: "PROMETHEUS_ENDPOINT", Value: p.Prometheus},
	}
	return slices.DeleteFunc(all, func(v corev1.EnvVar) bool { return v.Value == "" })
}

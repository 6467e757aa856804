package graph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// FromV1Beta1 reads a DynamoGraphDeployment of v1beta1. One that carries what only
// v1alpha1 can say is read in that version, in which it is stored.
func FromV1Beta1(dgd *v1beta1.DynamoGraphDeployment, d Defaults) (*Graph, error) {
	stored, _ := conversion.GraphToAlpha(dgd)
	if _, carries := dgd.Annotations[v1alpha1.AnnotationGraphPayload]; carries {
		return FromGraphDeployment(stored, d)
	}
	return fromBeta(dgd, stored, d)
}

// fromStoredBeta reads a graph that was written as v1beta1.
func fromStoredBeta(stored *v1alpha1.DynamoGraphDeployment, d Defaults) (*Graph, error) {
	dgd, _ := conversion.GraphToBeta(stored)
	return fromBeta(dgd, stored, d)
}

// fromBeta reads the components of a graph by the rules of v1beta1. What that cannot
// say is read where it stands: claims, routes, and labels and annotations of
// services that somebody added in v1alpha1.
func fromBeta(dgd *v1beta1.DynamoGraphDeployment, stored *v1alpha1.DynamoGraphDeployment, d Defaults) (*Graph, error) {
	g := newGraph(stored, d)
	for i := range dgd.Spec.Components {
		spec := &dgd.Spec.Components[i]
		only := stored.Spec.Services[spec.Name]
		if only == nil {
			only = &v1alpha1.SharedSpec{}
		}
		env := join(inheritedOf(stored.Annotations), g.Annotations)
		c, err := betaComponent(spec, only, betaLayers{env: dgd.Spec.Env, labels: g.Labels, annotations: env}, Engine(dgd.Spec.BackendFramework), d, g.Contract)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", spec.Name, err)
		}
		if c.Role == RoleFrontend && only.Ingress == nil {
			c.Ingress = ReadIngress(DefaultIngress(dgd.Name, d.Ingress), d.Ingress)
		}
		c.tune(stored, g.Contract, d.Running, join(stored.Annotations, c.Annotations, c.PodAnnotations))
		g.named(c, spec.Name, spec.GlobalDynamoNamespace, spec.ScalingAdapter != nil)
	}
	g.finish(stored, d)
	return g, nil
}

// FromV1Beta1Component reads a DynamoComponentDeployment of v1beta1.
func FromV1Beta1Component(dcd *v1beta1.DynamoComponentDeployment, d Defaults) (*Graph, error) {
	stored, _ := conversion.ComponentToAlpha(dcd)
	if _, carries := dcd.Annotations[v1alpha1.AnnotationComponentPayload]; carries {
		return FromComponentDeployment(stored, d)
	}
	return fromBetaComponent(dcd, stored, d)
}

// fromStoredBetaComponent reads a component that was written as v1beta1.
func fromStoredBetaComponent(stored *v1alpha1.DynamoComponentDeployment, d Defaults) (*Graph, error) {
	dcd, _ := conversion.ComponentToBeta(stored)
	return fromBetaComponent(dcd, stored, d)
}

func fromBetaComponent(dcd *v1beta1.DynamoComponentDeployment, stored *v1alpha1.DynamoComponentDeployment, d Defaults) (*Graph, error) {
	var template map[string]string
	if t := dcd.Spec.PodTemplate; t != nil {
		template = t.Annotations
	}
	g := newComponentGraph(stored, discovery(join(stored.Spec.Annotations, template), d), d)
	c, err := betaComponent(&dcd.Spec.Component, &stored.Spec.SharedSpec, betaLayers{}, Engine(dcd.Spec.BackendFramework), d, g.Contract)
	if err != nil {
		return nil, err
	}
	c.tune(stored, g.Contract, d.Running, join(stored.Annotations, c.Annotations, c.PodAnnotations))
	g.only(stored, c, dcd.Spec.GlobalDynamoNamespace, d)
	return g, nil
}

// betaLayers are what a graph puts under its components.
type betaLayers struct {
	env                 []corev1.EnvVar
	labels, annotations map[string]string
}

func inheritedOf(graph map[string]string) map[string]string { return inherit(nil, graph, ContractV1) }

// betaComponent reads a component by the rules of v1beta1: the pod template is the
// pod as the user wants it, and what the graph says lies under it. stored is the
// component in v1alpha1, for what only that can say.
func betaComponent(spec *v1beta1.Component, stored *v1alpha1.SharedSpec, under betaLayers, framework Engine, d Defaults, contract Contract) (Component, error) {
	var template corev1.PodTemplateSpec
	if spec.PodTemplate != nil {
		template = spec.PodTemplate.PodTemplateSpec
	}
	own := join(under.annotations, stored.Annotations)
	switched := join(own, template.Annotations)
	word, sub := betaType(contract, spec.Type, stored)
	c := Component{
		Discovery:      discovery(switched, d),
		Role:           RoleOf(word),
		Type:           word,
		SubType:        sub,
		Replicas:       deref(spec.Replicas, 1),
		Nodes:          1,
		Labels:         none(join(under.labels, stored.Labels)),
		Annotations:    none(withoutOrder(WithSwitches(own, template.Annotations))),
		PodLabels:      template.Labels,
		PodAnnotations: withoutOrder(template.Annotations),
		StartAfter:     startAfter(switched),
		Metrics:        switched[v1alpha1.AnnotationEnableMetrics] != "false",
		SharedMemory:   betaSharedMemory(spec.SharedMemorySize),
		Ingress:        ReadIngress(stored.Ingress, d.Ingress),
		Picker:         readPicker((*v1alpha1.EPPConfig)(spec.EPPConfig)),
	}
	if spec.Multinode != nil {
		c.Nodes = spec.Multinode.NodeCount
	}
	if spec.ModelRef != nil {
		c.Model = spec.ModelRef.Name
	}
	c.takePod(template.Spec, under.env)
	if err := c.configure(spec.Name, spec.Replicas == nil); err != nil {
		return Component{}, err
	}
	c.Engine = chooseEngine(c.Role, framework, c.Main.Command, c.Main.Args)
	if spec.CompilationCache != nil {
		cache := Mount{Claim: spec.CompilationCache.PVCName, Path: cmp.Or(spec.CompilationCache.MountPath, c.Engine.CompilationCache()), CompilationCache: true}
		c.Mounts = append(c.Mounts, cache)
		// The original's conversion listed the mount of a cache without its path.
		c.Main.VolumeMounts = slices.DeleteFunc(slices.Clone(c.Main.VolumeMounts), func(m corev1.VolumeMount) bool {
			return m.Name == spec.CompilationCache.PVCName && m.MountPath == ""
		})
	}
	c.readBetaRuntime(spec, stored)
	return c, nil
}

// betaType is a component's type and its refinement. Under the seed's contract they
// are what v1alpha1 calls them. A word of the user's own, for either, is known to that
// alone.
func betaType(contract Contract, role v1beta1.ComponentType, stored *v1alpha1.SharedSpec) (word, sub string) {
	if role == "" {
		return string(stored.ComponentType), stored.SubComponentType
	}
	if role == v1beta1.ComponentTypePrefill || role == v1beta1.ComponentTypeDecode {
		return typeUnder(contract, string(RoleWorker), string(role))
	}
	return string(role), stored.SubComponentType
}

// switchKeys are annotations that are read where those of a service stand. In
// v1beta1 they stand on the pod template.
var switchKeys = []string{
	v1alpha1.AnnotationDiscoveryBackend, v1alpha1.AnnotationEnableMetrics, v1alpha1.AnnotationDisableImagePullSecretDiscovery,
	v1alpha1.AnnotationStartAfter, v1alpha1.AnnotationDeploymentStrategy, v1alpha1.AnnotationMaxSurge, v1alpha1.AnnotationMaxUnavailable, v1alpha1.AnnotationMinReadySeconds,
}

// WithSwitches are the annotations of a service with those of its pod template that
// are read in their place.
func WithSwitches(annotations, template map[string]string) map[string]string {
	for _, key := range switchKeys {
		if value, set := template[key]; set {
			annotations = join(annotations, map[string]string{key: value})
		}
	}
	return annotations
}

// none is a map that says nothing when it is empty.
func none(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// takePod takes the user's pod apart: the main container, and the rest of it. The
// graph's variables lie under those of the main container, and what the main
// container mounts and nobody declares is a claim of that name.
func (c *Component) takePod(spec corev1.PodSpec, env []corev1.EnvVar) {
	main := corev1.Container{}
	if at := slices.IndexFunc(spec.Containers, func(o corev1.Container) bool { return o.Name == v1beta1.MainContainer }); at >= 0 {
		main = spec.Containers[at]
		spec.Containers = slices.Delete(slices.Clone(spec.Containers), at, at+1)
		if len(spec.Containers) == 0 {
			spec.Containers = nil
		}
	}
	main.Name = ""
	main.Env = mergeEnvs(env, main.Env)
	main.Resources = countable(main.Resources)
	c.Main, c.Pod = &main, &spec
	c.Mounts = claimsOf(main.VolumeMounts, spec.Volumes)
	c.Resources.GPUs = GPUsIn(main.Resources.Limits)
}

// claimsOf are the mounts whose volume nobody declares: each is of the claim of its
// name.
func claimsOf(mounts []corev1.VolumeMount, volumes []corev1.Volume) []Mount {
	var claims []Mount
	for _, m := range mounts {
		if m.Name != "" && m.MountPath != "" && !slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			claims = append(claims, Mount{Claim: m.Name, Path: m.MountPath})
		}
	}
	return claims
}

// countable gives what cannot be overcommitted a limit where it has a request
// alone: the server refuses it otherwise.
func countable(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	for name, quantity := range r.Requests {
		if !strings.Contains(string(name), "/") {
			continue
		}
		limit, limited := r.Limits[name]
		switch {
		case !limited:
			r.Limits = maps.Clone(r.Limits)
			if r.Limits == nil {
				r.Limits = corev1.ResourceList{}
			}
			r.Limits[name] = quantity
		case limit.Cmp(quantity) != 0:
			r.Requests = maps.Clone(r.Requests)
			r.Requests[name] = limit
		}
	}
	return r
}

// GPUsIn counts the GPUs of a container, whoever makes them.
func GPUsIn(limits corev1.ResourceList) int {
	if n := int(new(limits[defaultGPU]).Value()); n > 0 {
		return n
	}
	total := 0
	for name, quantity := range limits {
		domain, kind, _ := strings.Cut(string(name), "/")
		if kind == "gpu" || strings.HasPrefix(domain, "gpu.") {
			total += int(quantity.Value())
		}
	}
	return total
}

func betaSharedMemory(size *resource.Quantity) SharedMemory {
	switch {
	case size == nil:
		return SharedMemory{Size: new(defaultSharedMemory.DeepCopy())}
	case size.Sign() <= 0:
		return SharedMemory{}
	default:
		return SharedMemory{Size: new(size.DeepCopy())}
	}
}

// configure carries the settings in the environment of a graph that was packaged
// from Python into the component, as with v1alpha1.
func (c *Component) configure(name string, scale bool) error {
	carried, err := ApplyDeploymentConfig(name, v1alpha1.SharedSpec{ComponentType: v1alpha1.ComponentType(c.Type), Envs: c.Main.Env})
	if err != nil {
		return err
	}
	c.Main.Env = carried.Envs
	if scale && carried.Replicas != nil {
		c.Replicas = *carried.Replicas
	}
	if carried.Resources == nil {
		return nil
	}
	resources, err := readResources(carried.Resources)
	if err != nil {
		return err
	}
	resources.GPUs = cmp.Or(resources.GPUs, c.Resources.GPUs)
	c.Resources = resources
	return nil
}

// readBetaRuntime reads what the contract of 1.x renders.
func (c *Component) readBetaRuntime(spec *v1beta1.Component, stored *v1alpha1.SharedSpec) {
	if name := spec.FrontendSidecar; slices.ContainsFunc(c.Pod.Containers, func(o corev1.Container) bool { return o.Name == name }) {
		c.FrontendSidecar = name
	}
	if e := spec.Experimental; e != nil {
		if m := e.GPUMemoryService; m != nil {
			c.GPUMemory = &GPUMemory{Mode: sharing(m.Mode == v1beta1.SharingInterPod), DeviceClass: cmp.Or(m.DeviceClassName, defaultDeviceClass), Clients: m.ExtraClientContainers}
		}
		if f := e.Failover; f != nil {
			c.Failover = failover(f.Mode == v1beta1.SharingInterPod, shadows(f, stored))
		}
		if k := e.Checkpoint; k != nil && k.Enabled {
			c.Checkpoint = &Checkpoint{Ref: k.CheckpointRef, Wait: k.StartupPolicy == v1alpha1.StartupWaitForCheckpoint}
		}
	}
	if t := spec.TopologyConstraint; t != nil {
		c.PackDomain = t.PackDomain
	}
	c.MinAvailable = spec.MinAvailable
	c.Version = spec.RuntimeVersionOverride
	c.Devices = deviceClaims(c.Pod, c.Main.Resources.Claims)
}

// shadows is the number of engines that stand by. More than one are known to v1alpha1
// alone.
func shadows(f *v1beta1.Failover, stored *v1alpha1.SharedSpec) int32 {
	if stored.Failover != nil {
		return max(f.NumShadows, stored.Failover.NumShadows)
	}
	return f.NumShadows
}

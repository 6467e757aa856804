package conversion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// FrontendSidecar is the container that a frontendSidecar of v1alpha1 becomes.
const FrontendSidecar = "sidecar-frontend"

// up is a service as a component, without what only v1alpha1 can say.
func up(name string, s *v1alpha1.SharedSpec) v1beta1.Component {
	c := v1beta1.Component{
		Name:                   name,
		Type:                   upType(s),
		Replicas:               s.Replicas,
		MinAvailable:           s.MinAvailable,
		Multinode:              upMultinode(s.Multinode),
		ModelRef:               (*v1beta1.ModelReference)(s.ModelRef),
		EPPConfig:              (*v1beta1.EPPConfig)(s.EPPConfig),
		TopologyConstraint:     (*v1beta1.ComponentTopologyConstraint)(s.TopologyConstraint),
		GlobalDynamoNamespace:  s.GlobalDynamoNamespace,
		RuntimeVersionOverride: s.RuntimeVersionOverride,
		ProviderOverride:       (*v1beta1.ProviderOverride)(s.ProviderOverride),
		SharedMemorySize:       upSharedMemory(s.SharedMemory),
		CompilationCache:       upCache(s.VolumeMounts),
		PodTemplate:            upTemplate(s),
		Experimental:           upExperimental(s),
	}
	if s.ScalingAdapter != nil && s.ScalingAdapter.Enabled {
		c.ScalingAdapter = &v1beta1.ScalingAdapter{}
	}
	if s.FrontendSidecar != nil {
		c.FrontendSidecar = FrontendSidecar
	}
	return c
}

// upType is the role of a service. A word of the user's own is no role.
func upType(s *v1alpha1.SharedSpec) v1beta1.ComponentType {
	switch s.ComponentType {
	case v1alpha1.ComponentTypeWorker:
		if s.SubComponentType == v1alpha1.SubComponentTypePrefill || s.SubComponentType == v1alpha1.SubComponentTypeDecode {
			return v1beta1.ComponentType(s.SubComponentType)
		}
		return v1beta1.ComponentTypeWorker
	case v1alpha1.ComponentTypeFrontend, v1alpha1.ComponentTypePrefill, v1alpha1.ComponentTypeDecode,
		v1alpha1.ComponentTypePlanner, v1alpha1.ComponentTypeEPP:
		return v1beta1.ComponentType(s.ComponentType)
	default:
		return ""
	}
}

func upMultinode(m *v1alpha1.Multinode) *v1beta1.Multinode {
	if m == nil {
		return nil
	}
	role := func(r *v1alpha1.MultinodeRole) *v1beta1.MultinodeRole {
		if r == nil {
			return nil
		}
		return &v1beta1.MultinodeRole{ProviderOverride: (*v1beta1.ProviderOverride)(r.ProviderOverride)}
	}
	return &v1beta1.Multinode{NodeCount: m.NodeCount, Leader: role(m.Leader), Worker: role(m.Worker)}
}

func downMultinode(m *v1beta1.Multinode) *v1alpha1.Multinode {
	if m == nil {
		return nil
	}
	role := func(r *v1beta1.MultinodeRole) *v1alpha1.MultinodeRole {
		if r == nil {
			return nil
		}
		return &v1alpha1.MultinodeRole{ProviderOverride: (*v1alpha1.ProviderOverride)(r.ProviderOverride)}
	}
	return &v1alpha1.Multinode{NodeCount: m.NodeCount, Leader: role(m.Leader), Worker: role(m.Worker)}
}

// upSharedMemory is nil for a size that v1alpha1 takes for unset.
func upSharedMemory(m *v1alpha1.SharedMemory) *resource.Quantity {
	switch {
	case m == nil:
		return nil
	case m.Disabled:
		return resource.NewQuantity(0, resource.BinarySI)
	case m.Size == nil || m.Size.Sign() <= 0:
		return nil
	default:
		return m.Size
	}
}

func upCache(mounts []v1alpha1.VolumeMount) *v1beta1.CompilationCache {
	for _, m := range mounts {
		if m.UseAsCompilationCache {
			return &v1beta1.CompilationCache{PVCName: m.Name, MountPath: m.MountPoint}
		}
	}
	return nil
}

func upExperimental(s *v1alpha1.SharedSpec) *v1beta1.ComponentExperimental {
	var e v1beta1.ComponentExperimental
	if g := s.GPUMemoryService; g != nil && g.Enabled {
		e.GPUMemoryService = &v1beta1.GPUMemoryService{
			Mode: upMode(g.Mode), DeviceClassName: g.DeviceClassName, ExtraClientContainers: g.ExtraClientContainers,
		}
		for _, pod := range g.ExtraClientPods {
			e.GPUMemoryService.ExtraClientPods = append(e.GPUMemoryService.ExtraClientPods, v1beta1.ClientPod(pod))
		}
	}
	if f := s.Failover; f != nil && f.Enabled {
		// More shadows than one are more than v1beta1 allows.
		e.Failover = &v1beta1.Failover{Mode: upMode(f.Mode), NumShadows: min(f.NumShadows, 1)}
	}
	if c := s.Checkpoint; c != nil {
		e.Checkpoint = &v1beta1.Checkpoint{
			Enabled: c.Enabled, StartupPolicy: c.StartupPolicy, DeletionPolicy: c.DeletionPolicy, CheckpointRef: c.CheckpointRef,
			TargetContainerName: c.TargetContainerName, Mode: c.Mode,
			Job: (*v1beta1.CheckpointJob)(c.Job), Identity: (*v1beta1.CheckpointIdentity)(c.Identity),
		}
	}
	if e == (v1beta1.ComponentExperimental{}) {
		return nil
	}
	return &e
}

func upMode(mode v1alpha1.SharingMode) v1beta1.SharingMode {
	switch mode {
	case v1alpha1.SharingIntraPod:
		return v1beta1.SharingIntraPod
	case v1alpha1.SharingInterPod:
		return v1beta1.SharingInterPod
	default:
		return v1beta1.SharingMode(mode)
	}
}

func downMode(mode v1beta1.SharingMode) v1alpha1.SharingMode {
	switch mode {
	case v1beta1.SharingIntraPod:
		return v1alpha1.SharingIntraPod
	case v1beta1.SharingInterPod:
		return v1alpha1.SharingInterPod
	default:
		return v1alpha1.SharingMode(mode)
	}
}

// upTemplate is nil if the service says nothing about its pods.
func upTemplate(s *v1alpha1.SharedSpec) *v1beta1.PodTemplate {
	if s.ExtraPodMetadata == nil && s.ExtraPodSpec == nil && s.FrontendSidecar == nil && upResourcesEmpty(s.Resources) &&
		len(s.Envs) == 0 && s.EnvFromSecret == nil && s.LivenessProbe == nil && s.ReadinessProbe == nil && cacheOnly(s.VolumeMounts) {
		return nil
	}
	t := &v1beta1.PodTemplate{}
	if m := s.ExtraPodMetadata; m != nil {
		t.Labels, t.Annotations = m.Labels, m.Annotations
	}
	var others []corev1.Container
	if s.ExtraPodSpec != nil && s.ExtraPodSpec.PodSpec != nil {
		t.Spec = *s.ExtraPodSpec.PodSpec
		others = t.Spec.Containers
	}
	t.Spec.Containers = append(make([]corev1.Container, 0, len(others)+2), upMain(s))
	t.Spec.Containers = append(t.Spec.Containers, others...)
	if f := s.FrontendSidecar; f != nil {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{
			Name: FrontendSidecar, Image: f.Image, Args: f.Args, Env: f.Envs, EnvFrom: fromSecret(f.EnvFromSecret),
		})
	}
	return t
}

func upResourcesEmpty(r *v1alpha1.Resources) bool {
	up := upResources(r)
	return len(up.Requests) == 0 && len(up.Limits) == 0 && len(up.Claims) == 0
}

// cacheOnly reports whether all that is mounted is the compilation cache, which
// needs no template.
func cacheOnly(mounts []v1alpha1.VolumeMount) bool {
	return len(mounts) == 0 || len(mounts) == 1 && mounts[0].UseAsCompilationCache
}

func fromSecret(name *string) []corev1.EnvFromSource {
	if name == nil {
		return nil
	}
	return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: *name}}}}
}

// upMain is the main container: the service's own fields, and mainContainer over
// them. This is what the original shows; what such a service means is decided
// where its graph is built.
func upMain(s *v1alpha1.SharedSpec) corev1.Container {
	var c corev1.Container
	if s.ExtraPodSpec != nil && s.ExtraPodSpec.MainContainer != nil {
		c = *s.ExtraPodSpec.MainContainer
	}
	c.Name = v1beta1.MainContainer
	own := upResources(s.Resources)
	c.Resources.Requests = overlay(own.Requests, c.Resources.Requests)
	c.Resources.Limits = overlay(own.Limits, c.Resources.Limits)
	if len(c.Resources.Claims) == 0 {
		c.Resources.Claims = own.Claims
	}
	c.Env = mergeEnv(s.Envs, c.Env)
	if len(c.EnvFrom) == 0 {
		c.EnvFrom = fromSecret(s.EnvFromSecret)
	}
	if c.LivenessProbe == nil {
		c.LivenessProbe = s.LivenessProbe
	}
	if c.ReadinessProbe == nil {
		c.ReadinessProbe = s.ReadinessProbe
	}
	if len(s.VolumeMounts) > 0 {
		mounts := slices.Clone(c.VolumeMounts)
		for _, m := range s.VolumeMounts {
			mounts = append(mounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPoint})
		}
		c.VolumeMounts = mounts
	}
	return c
}

// mergeEnv puts variables over others by name, where those stand.
func mergeEnv(below, above []corev1.EnvVar) []corev1.EnvVar {
	if len(below) == 0 {
		return above
	}
	if len(above) == 0 {
		return below
	}
	all := slices.Clone(below)
	for _, v := range above {
		if i := slices.IndexFunc(all, func(e corev1.EnvVar) bool { return e.Name == v.Name }); i >= 0 {
			all[i] = v
		} else {
			all = append(all, v)
		}
	}
	return all
}

// down is a component as a service, without what only v1beta1 can say.
func down(c *v1beta1.Component) *v1alpha1.SharedSpec {
	s := &v1alpha1.SharedSpec{
		Replicas:               c.Replicas,
		MinAvailable:           c.MinAvailable,
		Multinode:              downMultinode(c.Multinode),
		ModelRef:               (*v1alpha1.ModelReference)(c.ModelRef),
		EPPConfig:              (*v1alpha1.EPPConfig)(c.EPPConfig),
		TopologyConstraint:     (*v1alpha1.ServiceTopologyConstraint)(c.TopologyConstraint),
		GlobalDynamoNamespace:  c.GlobalDynamoNamespace,
		RuntimeVersionOverride: c.RuntimeVersionOverride,
		ProviderOverride:       (*v1alpha1.ProviderOverride)(c.ProviderOverride),
	}
	switch c.Type {
	case v1beta1.ComponentTypePrefill, v1beta1.ComponentTypeDecode:
		s.ComponentType, s.SubComponentType = v1alpha1.ComponentTypeWorker, string(c.Type)
	default:
		s.ComponentType = v1alpha1.ComponentType(c.Type)
	}
	if size := c.SharedMemorySize; size != nil {
		if size.Sign() == 0 {
			s.SharedMemory = &v1alpha1.SharedMemory{Disabled: true}
		} else {
			s.SharedMemory = &v1alpha1.SharedMemory{Size: size}
		}
	}
	if c.ScalingAdapter != nil {
		s.ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
	}
	if cache := c.CompilationCache; cache != nil {
		s.VolumeMounts = []v1alpha1.VolumeMount{{Name: cache.PVCName, MountPoint: cache.MountPath, UseAsCompilationCache: true}}
	}
	downTemplate(c, s)
	downExperimental(c.Experimental, s)
	return s
}

func downTemplate(c *v1beta1.Component, s *v1alpha1.SharedSpec) {
	t := c.PodTemplate
	if t == nil {
		return
	}
	if len(t.Labels) > 0 || len(t.Annotations) > 0 {
		s.ExtraPodMetadata = &v1alpha1.ExtraPodMetadata{Labels: t.Labels, Annotations: t.Annotations}
	}
	spec := t.Spec
	var main *corev1.Container
	if i := mainIndex(spec.Containers); i >= 0 {
		copied := spec.Containers[i]
		main = &copied
		spec.Containers = slices.Delete(slices.Clone(spec.Containers), i, i+1)
	}
	if main != nil {
		downMain(c, main, s)
		if empty(main) {
			main = nil
		}
	}
	extra := &v1alpha1.ExtraPodSpec{MainContainer: main}
	if !same(&spec, &noPod) {
		extra.PodSpec = &spec
	}
	if extra.PodSpec != nil || main != nil {
		s.ExtraPodSpec = extra
	}
}

func mainIndex(containers []corev1.Container) int {
	return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == v1beta1.MainContainer })
}

func empty(c *corev1.Container) bool {
	return same(c, &noContainer)
}

// downMain moves what a service has fields for out of the main container.
func downMain(c *v1beta1.Component, main *corev1.Container, s *v1alpha1.SharedSpec) {
	s.Resources = downResources(main.Resources)
	s.Envs = main.Env
	s.LivenessProbe, s.ReadinessProbe = main.LivenessProbe, main.ReadinessProbe
	cached := false
	for _, m := range main.VolumeMounts {
		if !cached && isCache(c.CompilationCache, m) {
			cached = true // it is there already, with its flag
			continue
		}
		s.VolumeMounts = append(s.VolumeMounts, v1alpha1.VolumeMount{Name: m.Name, MountPoint: m.MountPath})
	}
	main.Name = ""
	main.Resources, main.Env, main.LivenessProbe, main.ReadinessProbe, main.VolumeMounts = corev1.ResourceRequirements{}, nil, nil, nil, nil
}

// isCache reports whether a mount is that of the compilation cache.
func isCache(cache *v1beta1.CompilationCache, m corev1.VolumeMount) bool {
	return cache != nil && cache.PVCName == m.Name && cache.MountPath == m.MountPath
}

func downExperimental(e *v1beta1.ComponentExperimental, s *v1alpha1.SharedSpec) {
	if e == nil {
		return
	}
	if g := e.GPUMemoryService; g != nil {
		s.GPUMemoryService = &v1alpha1.GPUMemoryService{
			Enabled: true, Mode: downMode(g.Mode), DeviceClassName: g.DeviceClassName, ExtraClientContainers: g.ExtraClientContainers,
		}
		for _, pod := range g.ExtraClientPods {
			s.GPUMemoryService.ExtraClientPods = append(s.GPUMemoryService.ExtraClientPods, v1alpha1.ClientPod(pod))
		}
	}
	if f := e.Failover; f != nil {
		s.Failover = &v1alpha1.Failover{Enabled: true, Mode: downMode(f.Mode), NumShadows: f.NumShadows}
	}
	if c := e.Checkpoint; c != nil {
		s.Checkpoint = &v1alpha1.Checkpoint{
			Enabled: c.Enabled, StartupPolicy: c.StartupPolicy, DeletionPolicy: c.DeletionPolicy, CheckpointRef: c.CheckpointRef,
			TargetContainerName: c.TargetContainerName, Mode: c.Mode,
			Job: (*v1alpha1.CheckpointJob)(c.Job), Identity: (*v1alpha1.CheckpointIdentity)(c.Identity),
		}
	}
}

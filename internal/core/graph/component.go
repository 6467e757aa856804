package graph

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// V1Beta1 is a component in the words of v1beta1, whichever it was read from: all
// that is said of the main container in one place, with the precedence of the
// version that it was written in. It is read again as the same component.
func (c Component) V1Beta1() v1beta1.Component {
	spec := v1beta1.Component{
		Name:                   c.Name,
		Type:                   c.betaType(),
		Replicas:               new(c.Replicas),
		MinAvailable:           c.MinAvailable,
		SharedMemorySize:       c.SharedMemory.size(),
		FrontendSidecar:        c.FrontendSidecar,
		GlobalDynamoNamespace:  c.DynamoNamespace == globalNamespace,
		RuntimeVersionOverride: c.Version,
		PodTemplate:            c.podTemplate(),
	}
	if c.Multinode() {
		spec.Multinode = &v1beta1.Multinode{NodeCount: c.Nodes}
	}
	if c.Model != "" {
		spec.ModelRef = &v1beta1.ModelReference{Name: c.Model}
	}
	if p := c.Picker; p != nil {
		spec.EPPConfig = &v1beta1.EPPConfig{}
		if p.Inline != nil {
			spec.EPPConfig.Config = &runtime.RawExtension{Raw: p.Inline}
		} else {
			spec.EPPConfig.ConfigMapRef = &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: p.ConfigMap}, Key: p.Key}
		}
	}
	if at := c.cache(); at >= 0 {
		spec.CompilationCache = &v1beta1.CompilationCache{PVCName: c.Mounts[at].Claim, MountPath: c.Mounts[at].Path}
	}
	if c.PackDomain != "" {
		spec.TopologyConstraint = &v1beta1.ComponentTopologyConstraint{PackDomain: c.PackDomain}
	}
	spec.Experimental = c.experimental()
	return spec
}

// cache is the mount that is the compilation cache; -1 if none is.
func (c Component) cache() int {
	return slices.IndexFunc(c.Mounts, func(m Mount) bool { return m.CompilationCache })
}

func (c Component) betaType() v1beta1.ComponentType {
	switch split := Role(c.SubType); {
	case c.Role == RoleOther:
		return ""
	case c.Role == RoleWorker && (split == RolePrefill || split == RoleDecode):
		return v1beta1.ComponentType(split)
	default:
		return v1beta1.ComponentType(c.Role)
	}
}

func (c Component) experimental() *v1beta1.ComponentExperimental {
	if c.GPUMemory == nil && c.Failover == nil && c.Checkpoint == nil {
		return nil
	}
	e := &v1beta1.ComponentExperimental{}
	if m := c.GPUMemory; m != nil {
		e.GPUMemoryService = &v1beta1.GPUMemoryService{Mode: v1beta1.SharingMode(m.Mode), DeviceClassName: m.DeviceClass, ExtraClientContainers: m.Clients}
	}
	if f := c.Failover; f != nil {
		e.Failover = &v1beta1.Failover{Mode: v1beta1.SharingMode(f.Mode), NumShadows: f.Shadows}
	}
	if k := c.Checkpoint; k != nil {
		e.Checkpoint = &v1beta1.Checkpoint{Enabled: true, CheckpointRef: k.Ref, StartupPolicy: v1alpha1.StartupImmediate}
		if k.Wait {
			e.Checkpoint.StartupPolicy = v1alpha1.StartupWaitForCheckpoint
		}
	}
	return e
}

// size is that of v1beta1: absent for the default, zero for none.
func (m SharedMemory) size() *resource.Quantity {
	switch {
	case m.Size == nil:
		return resource.NewQuantity(0, resource.BinarySI)
	case m.Size.Cmp(defaultSharedMemory) == 0:
		return nil
	default:
		return m.Size
	}
}

// podTemplate is the user's pod, the main container first.
func (c Component) podTemplate() *v1beta1.PodTemplate {
	t := &v1beta1.PodTemplate{}
	t.Labels = none(join(c.Labels, c.PodLabels))
	t.Annotations = none(join(c.Annotations, c.PodAnnotations))
	if c.Pod != nil {
		t.Spec = *c.Pod
	}
	main := c.MainContainer()
	t.Spec.Containers = append([]corev1.Container{main}, t.Spec.Containers...)
	return t
}

// MainContainer is the main container as the user wants it, wherever that was said.
func (c Component) MainContainer() corev1.Container {
	main := corev1.Container{}
	if c.Main != nil {
		main = *c.Main
	}
	main.Name = v1beta1.MainContainer
	if len(c.Env) > 0 {
		main.Env = mergeEnvs(main.Env, c.Env)
	}
	if c.EnvFromSecret != "" {
		main.EnvFrom = append(slices.Clone(main.EnvFrom), corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: c.EnvFromSecret}},
		})
	}
	main.LivenessProbe = probe(main.LivenessProbe, c.Liveness)
	main.ReadinessProbe = probe(main.ReadinessProbe, c.Readiness)
	main.Resources = corev1.ResourceRequirements{
		Requests: quantitiesOver(main.Resources.Requests, c.Resources.Requests),
		Limits:   quantitiesOver(main.Resources.Limits, c.Resources.Limits),
		Claims:   slices.Concat(main.Resources.Claims, c.Resources.Claims),
	}
	for i, m := range c.Mounts {
		taken := slices.ContainsFunc(main.VolumeMounts, func(o corev1.VolumeMount) bool { return o.MountPath == m.Path })
		if i != c.cache() && !taken {
			main.VolumeMounts = append(slices.Clip(main.VolumeMounts), corev1.VolumeMount{Name: m.Claim, MountPath: m.Path})
		}
	}
	return main
}

// probe puts one probe over another. One that only tunes keeps what is asked.
func probe(below, above *corev1.Probe) *corev1.Probe {
	switch {
	case above == nil:
		return below
	case below != nil && above.ProbeHandler == corev1.ProbeHandler{}:
		tuned := *above
		tuned.ProbeHandler = below.ProbeHandler
		return &tuned
	default:
		return above
	}
}

func quantitiesOver(below, above corev1.ResourceList) corev1.ResourceList {
	if len(below) == 0 {
		return above
	}
	all := maps.Clone(below)
	maps.Copy(all, above)
	return all
}

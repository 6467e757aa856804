package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// addFrontend makes one of the user's containers the frontend of this pod alone: what
// a frontend starts from lies under it, and it sees what the main container mounts.
func addFrontend(s *corev1.PodSpec, c graph.Component, p Platform) {
	if c.FrontendSidecar == "" || !contract.Of(c.Contract).Pods.Runtime {
		return
	}
	at := slices.IndexFunc(s.Containers, func(o corev1.Container) bool { return o.Name == c.FrontendSidecar })
	if at <= 0 { // the main container is the first
		return
	}
	users := s.Containers[at]
	// The frontend's own view of the component: the same graph, another role.
	role := c
	role.Role, role.Type, role.Generation = graph.RoleFrontend, string(graph.RoleFrontend), ""
	base := yielding(roleContainer(role), users)
	sidecar := Overlay(base, withoutOwnRules(users))
	if len(users.Command) == 0 && len(users.Args) > 0 && strings.HasPrefix(users.Args[0], "--") {
		// These are options of the frontend, not of the interpreter that is its command.
		sidecar.Args = append(slices.Clone(base.Args), users.Args...)
	}
	sidecar.Env = mergeEnv(platformEnv(p), base.Env, identityEnv(role, users.Name), users.Env)
	sidecar.LivenessProbe = chooseProbe(base.LivenessProbe, users.LivenessProbe)
	sidecar.ReadinessProbe = chooseProbe(base.ReadinessProbe, users.ReadinessProbe)
	sidecar.StartupProbe = chooseProbe(base.StartupProbe, users.StartupProbe)
	sidecar.VolumeMounts = users.VolumeMounts
	for _, m := range s.Containers[0].VolumeMounts {
		taken := func(o corev1.VolumeMount) bool { return o.Name == m.Name || o.MountPath == m.MountPath }
		if !slices.ContainsFunc(sidecar.VolumeMounts, taken) {
			sidecar.VolumeMounts = append(slices.Clip(sidecar.VolumeMounts), m)
		}
	}
	s.Containers = slices.Clone(s.Containers)
	s.Containers[at] = sidecar
}

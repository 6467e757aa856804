package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

const sharedMemoryVolume = "shared-memory"

// volumes are the operator's volumes of a pod: one for each claim, however
// often it is mounted, and the shared memory that engines exchange tensors in.
func volumes(c graph.Component) []corev1.Volume {
	var list []corev1.Volume
	for _, m := range c.Mounts {
		if slices.ContainsFunc(list, func(v corev1.Volume) bool { return v.Name == m.Claim }) {
			continue
		}
		list = append(list, corev1.Volume{Name: m.Claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: m.Claim},
		}})
	}
	if c.SharedMemory.Size == nil || contract.Of(c.Contract).Pods.OwnSharedMemory {
		return list
	}
	return append(list, sharedMemory(c))
}

const sharedMemoryPath = "/dev/shm"

func sharedMemory(c graph.Component) corev1.Volume {
	return corev1.Volume{Name: sharedMemoryVolume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: c.SharedMemory.Size},
	}}
}

// shareMemory gives the main container its shared memory where the contract has
// that win over the user's: a mount in its place is dropped, and a volume of its name
// replaced. The volumes that the main container mounts stand before it, the user's
// others behind it.
func shareMemory(s *corev1.PodSpec, c graph.Component) {
	if !contract.Of(c.Contract).Pods.OwnSharedMemory {
		return
	}
	main := &s.Containers[0] // the contract puts it first
	var before, behind []corev1.Volume
	if c.SharedMemory.Size != nil {
		main.VolumeMounts = slices.DeleteFunc(slices.Clone(main.VolumeMounts), func(m corev1.VolumeMount) bool { return m.MountPath == sharedMemoryPath })
	}
	for _, v := range s.Volumes {
		switch {
		case c.SharedMemory.Size != nil && v.Name == sharedMemoryVolume:
		case slices.ContainsFunc(main.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }):
			before = append(before, v)
		default:
			behind = append(behind, v)
		}
	}
	if c.SharedMemory.Size != nil {
		before = append(before, sharedMemory(c))
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: sharedMemoryVolume, MountPath: sharedMemoryPath})
	}
	s.Volumes = slices.Concat(before, behind)
}

func mounts(c graph.Component) []corev1.VolumeMount {
	var list []corev1.VolumeMount
	for _, m := range c.Mounts {
		list = append(list, corev1.VolumeMount{Name: m.Claim, MountPath: m.Path})
	}
	if c.SharedMemory.Size == nil || contract.Of(c.Contract).Pods.OwnSharedMemory {
		return list
	}
	return append(list, corev1.VolumeMount{Name: sharedMemoryVolume, MountPath: sharedMemoryPath})
}

// addVolumes appends ours to the user's; a name that the user has taken is his.
func addVolumes(users, ours []corev1.Volume) []corev1.Volume {
	return addMissing(users, ours, func(v corev1.Volume) string { return v.Name })
}

// addMounts does the same for mounts, by path.
func addMounts(users, ours []corev1.VolumeMount) []corev1.VolumeMount {
	return addMissing(users, ours, func(m corev1.VolumeMount) string { return m.MountPath })
}

func addMissing[T any](users, ours []T, key func(T) string) []T {
	users = slices.Clip(users)
	for _, own := range ours {
		if !slices.ContainsFunc(users, func(u T) bool { return key(u) == key(own) }) {
			users = append(users, own)
		}
	}
	return users
}

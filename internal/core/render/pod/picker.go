package pod

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Volumes of an endpoint picker: its configuration, and a place to keep
// tokenizers in.
const (
	pickerConfigVolume = "epp-config"
	pickerCacheVolume  = "hf-cache"
)

// pickerContainer is a gateway's endpoint picker. It has no command: the image
// brings it.
func pickerContainer(c graph.Component) corev1.Container {
	probe := &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: portHealth, Service: new("inference-extension")}},
		InitialDelaySeconds: 5, PeriodSeconds: 10,
	}
	rules := contract.Of(c.Contract).Pods
	return corev1.Container{
		Args: []string{
			rules.PickerDash + "pool-name", graph.PickerPool(c.Graph),
			rules.PickerDash + "pool-namespace", c.Namespace,
			rules.PickerDash + "pool-group", "inference.networking.k8s.io",
			"-v", "4",
			"--zap-encoder", "json",
			rules.PickerDash + "grpc-port", strconv.Itoa(PortPicker),
			rules.PickerDash + "grpc-health-port", strconv.Itoa(portHealth),
			rules.PickerDash + "config-file", "/etc/epp/" + graph.PickerConfigKey,
		},
		Ports: []corev1.ContainerPort{
			tcp(PortNameGRPC, PortPicker), tcp("grpc-health", portHealth), tcp(PortNameMetrics, PortSystem),
		},
		Env:            rules.PickerEnv,
		LivenessProbe:  probe,
		ReadinessProbe: probe.DeepCopy(),
		StartupProbe:   rules.PickerStartup.DeepCopy(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: pickerConfigVolume, MountPath: "/etc/epp", ReadOnly: true},
			{Name: pickerCacheVolume, MountPath: "/home/nonroot/.cache"},
		},
	}
}

// pickerVolumes bring the picker's configuration under the one name that its
// arguments know, whatever key the user keeps it under.
func pickerVolumes(c graph.Component) []corev1.Volume {
	if c.Picker == nil || c.Role != graph.RoleEPP {
		return nil
	}
	return []corev1.Volume{
		{Name: pickerConfigVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: cmp.Or(c.Picker.ConfigMap, graph.PickerConfigMap(c.Graph))},
			Items:                []corev1.KeyToPath{{Key: c.Picker.Key, Path: graph.PickerConfigKey}},
		}}},
		{Name: pickerCacheVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
}

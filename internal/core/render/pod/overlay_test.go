package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestOverlay(t *testing.T) {
	cases := map[string]struct{ ours, users, want corev1.Container }{
		"a scalar that is not set keeps ours": {
			ours: corev1.Container{Image: "a"}, users: corev1.Container{WorkingDir: "/w"},
			want: corev1.Container{Image: "a", WorkingDir: "/w"},
		},
		"arguments are replaced": {
			ours: corev1.Container{Args: []string{"-m", "x"}}, users: corev1.Container{Args: []string{"y"}},
			want: corev1.Container{Args: []string{"y"}},
		},
		"ports are joined by number": {
			ours:  corev1.Container{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8000}}},
			users: corev1.Container{Ports: []corev1.ContainerPort{{Name: "more", ContainerPort: 1}, {ContainerPort: 8000, HostPort: 80}}},
			want: corev1.Container{Ports: []corev1.ContainerPort{
				{Name: "http", ContainerPort: 8000, HostPort: 80}, {Name: "more", ContainerPort: 1},
			}},
		},
		"quantities are one value each": {
			ours:  corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}}},
			users: corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}},
			want:  corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}}},
		},
		"a pointer to a zero value counts": {
			ours:  corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(true), Privileged: new(false)}},
			users: corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(false)}},
			want:  corev1.Container{SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(false), Privileged: new(false)}},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			before := *c.ours.DeepCopy()
			if diff := cmp.Diff(c.want, Overlay(c.ours, c.users)); diff != "" {
				t.Errorf("overlay (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.ours); diff != "" {
				t.Errorf("our layer changed:\n%s", diff)
			}
		})
	}
}

func TestEnvironmentOrder(t *testing.T) {
	v := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	cases := map[string]struct{ layers, want []corev1.EnvVar }{
		"sorted by name": {
			layers: []corev1.EnvVar{v("B", "1"), v("A", "2")},
			want:   []corev1.EnvVar{v("A", "2"), v("B", "1")},
		},
		"a variable follows those it refers to": {
			layers: []corev1.EnvVar{v("A", "$(C)/x"), v("B", "1"), v("C", "$(B)")},
			want:   []corev1.EnvVar{v("B", "1"), v("C", "$(B)"), v("A", "$(C)/x")},
		},
		"an escaped reference is none": {
			layers: []corev1.EnvVar{v("A", "$$(B)"), v("B", "1")},
			want:   []corev1.EnvVar{v("A", "$$(B)"), v("B", "1")},
		},
		"a circle ends": {
			layers: []corev1.EnvVar{v("A", "$(B)"), v("B", "$(A)")},
			want:   []corev1.EnvVar{v("B", "$(A)"), v("A", "$(B)")},
		},
		"a reference to nothing of ours is left alone": {
			layers: []corev1.EnvVar{v("A", "$(HOST) $ $("), v("B", "")},
			want:   []corev1.EnvVar{v("A", "$(HOST) $ $("), v("B", "")},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mergeEnv(c.layers)); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChooseProbe(t *testing.T) {
	ours := &corev1.Probe{ProbeHandler: get("/live", "system"), PeriodSeconds: 5}
	exec := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
	cases := map[string]struct{ users, want *corev1.Probe }{
		"none keeps ours":                        {nil, ours},
		"one with a handler replaces ours whole": {&corev1.Probe{ProbeHandler: exec}, &corev1.Probe{ProbeHandler: exec}},
		"one that only tunes keeps our handler":  {&corev1.Probe{InitialDelaySeconds: 180}, &corev1.Probe{ProbeHandler: ours.ProbeHandler, InitialDelaySeconds: 180}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, chooseProbe(ours, c.users)); diff != "" {
				t.Errorf("probe (-want +got):\n%s", diff)
			}
		})
	}
}

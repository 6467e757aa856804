// Package environ builds the environment that a pod's spec asks for one
// container: envFrom, valueFrom, the downward API and $(VAR) references, with
// the words a kubelet uses when something is missing.
//
// It adds nothing of its own and does not rewrite paths: references must expand
// to what the author wrote. Variables for Services are left out.
package environ

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// Source reads the objects that an environment may refer to.
type Source interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// Environment is a container's variables in the order of their definition.
type Environment struct {
	order  []string
	values map[string]string
}

// Build resolves the environment of container c. The pod carries its own
// addresses in its status; allocatable is what the node offers, for limits that
// are not set.
func Build(ctx context.Context, pod *corev1.Pod, c *corev1.Container, allocatable corev1.ResourceList, src Source) (*Environment, error) {
	e := &Environment{values: map[string]string{}}
	for _, from := range c.EnvFrom {
		data, err := bulk(ctx, pod.Namespace, from, src)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			if name := from.Prefix + key; !strings.ContainsRune(name, '=') {
				e.set(name, data[key])
			}
		}
	}
	for _, v := range c.Env {
		value := e.Expand(v.Value)
		if v.ValueFrom != nil {
			var ok bool
			var err error
			if value, ok, err = single(ctx, pod, c, v, allocatable, src); err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		e.set(v.Name, value)
	}
	return e, nil
}

// Expand replaces $(VAR) by the variable's value; a reference to a variable
// that is not defined stays as it is.
func (e *Environment) Expand(s string) string {
	return expansion.Expand(s, expansion.MappingFuncFor(e.values))
}

// ExpandAll expands each string.
func (e *Environment) ExpandAll(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, e.Expand(s))
	}
	return out
}

// ExpandStrict expands s, and fails on a variable that is not defined, as
// subPathExpr asks.
func (e *Environment) ExpandStrict(s string) (string, error) {
	var missing []string
	out := expansion.Expand(s, func(name string) string {
		value, ok := e.values[name]
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("expand %q: missing value for %q", s, missing[0])
	}
	return out, nil
}

// Has reports whether the variable is defined.
func (e *Environment) Has(name string) bool {
	_, ok := e.values[name]
	return ok
}

// All yields the variables in the order of their definition.
func (e *Environment) All(yield func(name, value string) bool) {
	for _, name := range e.order {
		if !yield(name, e.values[name]) {
			return
		}
	}
}

func (e *Environment) set(name, value string) {
	if !e.Has(name) {
		e.order = append(e.order, name)
	}
	e.values[name] = value
}

// bulk is the content of one envFrom entry.
func bulk(ctx context.Context, namespace string, from corev1.EnvFromSource, src Source) (map[string]string, error) {
	switch {
	case from.ConfigMapRef != nil:
		cm, err := src.ConfigMap(ctx, namespace, from.ConfigMapRef.Name)
		if err != nil {
			return nil, unlessOptional(err, from.ConfigMapRef.Optional)
		}
		return cm.Data, nil
	case from.SecretRef != nil:
		secret, err := src.Secret(ctx, namespace, from.SecretRef.Name)
		if err != nil {
			return nil, unlessOptional(err, from.SecretRef.Optional)
		}
		data := make(map[string]string, len(secret.Data))
		for k, v := range secret.Data {
			data[k] = string(v)
		}
		return data, nil
	}
	return nil, nil
}

// single resolves one valueFrom; it reports false if an optional source is
// missing, in which case the variable is not defined at all.
func single(ctx context.Context, pod *corev1.Pod, c *corev1.Container, v corev1.EnvVar, allocatable corev1.ResourceList, src Source) (string, bool, error) {
	switch from := v.ValueFrom; {
	case from.FieldRef != nil:
		value, err := Field(pod, from.FieldRef.FieldPath)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err := Resource(pod, c.Name, from.ResourceFieldRef, allocatable)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		cm, err := src.ConfigMap(ctx, pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
		if value, ok := cm.Data[ref.Key]; ok {
			return value, true, nil
		}
		if isTrue(ref.Optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, pod.Namespace, ref.Name)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		secret, err := src.Secret(ctx, pod.Namespace, ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, ref.Optional)
		}
		if value, ok := secret.Data[ref.Key]; ok {
			return string(value), true, nil
		}
		if isTrue(ref.Optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, pod.Namespace, ref.Name)
	}
	return "", false, fmt.Errorf("variable %s: this kind of valueFrom is not supported by the local cluster", v.Name)
}

// Field reads one field of the downward API.
func Field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return pod.Status.PodIP, nil
	case "status.hostIP":
		return pod.Status.HostIP, nil
	case "status.podIPs":
		return join(pod.Status.PodIPs, func(ip corev1.PodIP) string { return ip.IP }), nil
	case "status.hostIPs":
		return join(pod.Status.HostIPs, func(ip corev1.HostIP) string { return ip.IP }), nil
	}
	return fieldpath.ExtractFieldPathAsString(pod, path)
}

// Resource reads one resource of the downward API; container is the one that
// asks, used unless the selector names another.
func Resource(pod *corev1.Pod, container string, ref *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string, error) {
	if ref.ContainerName != "" {
		container = ref.ContainerName
	}
	return resource.ExtractResourceValueByContainerNameAndNodeAllocatable(ref, pod, container, allocatable)
}

func unlessOptional(err error, optional *bool) error {
	if isTrue(optional) && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func isTrue(b *bool) bool { return b != nil && *b }

func join[T any](in []T, text func(T) string) string {
	var out []string
	for _, v := range in {
		out = append(out, text(v))
	}
	return strings.Join(out, ",")
}

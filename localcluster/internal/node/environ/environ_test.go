package environ

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type objects struct {
	configMaps map[string]map[string]string
	secrets    map[string]map[string][]byte
}

func (o objects) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	if data, ok := o.configMaps[name]; ok {
		return &corev1.ConfigMap{Data: data}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmap"}, name)
}

func (o objects) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if data, ok := o.secrets[name]; ok {
		return &corev1.Secret{Data: data}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secret"}, name)
}

func TestBuild(t *testing.T) {
	src := objects{
		configMaps: map[string]map[string]string{"cm": {"b": "2", "a": "1"}},
		secrets:    map[string]map[string][]byte{"s": {"token": []byte("hush")}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{NodeName: "node-0", ServiceAccountName: "sa", Containers: []corev1.Container{{
			Name:      "main",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}},
		}}},
		Status: corev1.PodStatus{PodIP: "10.17.0.2", PodIPs: []corev1.PodIP{{IP: "10.17.0.2"}}, HostIP: "127.0.0.1"},
	}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	key := func(name, object, key string, optional bool) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: object}, Key: key, Optional: &optional}}}
	}
	secretKey := func(name, object, key string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: object}, Key: key}}}
	}
	fromConfigMap := func(name string, optional bool) corev1.EnvFromSource {
		return corev1.EnvFromSource{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: &optional}}
	}

	for name, c := range map[string]struct {
		from    []corev1.EnvFromSource
		env     []corev1.EnvVar
		want    []string
		wantErr string
	}{
		"envFrom takes every key under its prefix": {
			from: []corev1.EnvFromSource{fromConfigMap("cm", false)},
			want: []string{"P_a=1", "P_b=2"},
		},
		"env wins over envFrom": {
			from: []corev1.EnvFromSource{fromConfigMap("cm", false)},
			env:  []corev1.EnvVar{{Name: "P_a", Value: "mine"}},
			want: []string{"P_a=mine", "P_b=2"},
		},
		"a reference sees variables defined before it, and only those": {
			env:  []corev1.EnvVar{{Name: "A", Value: "$(B)"}, {Name: "B", Value: "b"}, {Name: "C", Value: "$(B)/$$(B)"}},
			want: []string{"A=$(B)", "B=b", "C=b/$(B)"},
		},
		"the downward API knows the pod": {
			env: []corev1.EnvVar{field("N", "metadata.name"), field("NS", "metadata.namespace"), field("U", "metadata.uid"), field("L", "metadata.labels['app']"),
				field("IP", "status.podIP"), field("IPS", "status.podIPs"), field("H", "status.hostIP"), field("NODE", "spec.nodeName"), field("SA", "spec.serviceAccountName")},
			want: []string{"N=p", "NS=ns", "U=u", "L=x", "IP=10.17.0.2", "IPS=10.17.0.2", "H=127.0.0.1", "NODE=node-0", "SA=sa"},
		},
		"a limit that is not set is the node's": {
			env: []corev1.EnvVar{
				{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
				{Name: "MEM", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Gi")}}},
			},
			want: []string{"CPU=2", "MEM=8"},
		},
		"a secret's key":                    {env: []corev1.EnvVar{secretKey("T", "s", "token")}, want: []string{"T=hush"}},
		"an optional missing key is unset":  {env: []corev1.EnvVar{key("K", "cm", "zz", true)}},
		"an optional missing map is unset":  {env: []corev1.EnvVar{key("K", "zz", "zz", true)}, from: []corev1.EnvFromSource{fromConfigMap("zz", true)}},
		"a missing key is named":            {env: []corev1.EnvVar{key("K", "cm", "zz", false)}, wantErr: `couldn't find key zz in ConfigMap ns/cm`},
		"a missing map is named":            {env: []corev1.EnvVar{key("K", "zz", "zz", false)}, wantErr: `configmap "zz" not found`},
		"a missing secret is named":         {env: []corev1.EnvVar{secretKey("K", "zz", "zz")}, wantErr: `secret "zz" not found`},
		"a missing map of envFrom is named": {from: []corev1.EnvFromSource{fromConfigMap("zz", false)}, wantErr: `configmap "zz" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Build(t.Context(), pod, &corev1.Container{Name: "main", EnvFrom: c.from, Env: c.env}, corev1.ResourceList{"memory": resource.MustParse("8Gi")}, src)
			if c.wantErr != "" {
				if err == nil || err.Error() != c.wantErr {
					t.Fatalf("error %v, want %s", err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for name, value := range e.All {
				got = append(got, name+"="+value)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpandStrictNamesTheMissingVariable(t *testing.T) {
	e := &Environment{values: map[string]string{"A": "a"}}
	if got, err := e.ExpandStrict("x/$(A)"); err != nil || got != "x/a" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := e.ExpandStrict("$(B)"); err == nil {
		t.Error("no error for a missing variable")
	}
}

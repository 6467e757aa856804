package volume

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/secret"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/node/environ"
)

type files = map[string]volumeutil.FileProjection

// payload is the files of a volume whose content comes from the API.
func (s *Set) payload(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (files, error) {
	switch {
	case v.ConfigMap != nil:
		return s.configMap(ctx, pod, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.DefaultMode, v.ConfigMap.Optional)
	case v.Secret != nil:
		return s.secret(ctx, pod, v.Secret.SecretName, v.Secret.Items, v.Secret.DefaultMode, v.Secret.Optional)
	case v.DownwardAPI != nil:
		return s.downward(pod, v.DownwardAPI.Items, v.DownwardAPI.DefaultMode)
	}
	all := files{}
	for i := range v.Projected.Sources {
		part, err := s.projection(ctx, pod, v, i)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, part)
	}
	return all, nil
}

func (s *Set) projection(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, i int) (files, error) {
	mode := v.Projected.DefaultMode
	switch p := v.Projected.Sources[i]; {
	case p.ConfigMap != nil:
		return s.configMap(ctx, pod, p.ConfigMap.Name, p.ConfigMap.Items, mode, p.ConfigMap.Optional)
	case p.Secret != nil:
		return s.secret(ctx, pod, p.Secret.Name, p.Secret.Items, mode, p.Secret.Optional)
	case p.DownwardAPI != nil:
		return s.downward(pod, p.DownwardAPI.Items, mode)
	case p.ServiceAccountToken != nil:
		return s.token(ctx, pod, fmt.Sprintf("%s/%d", v.Name, i), p.ServiceAccountToken, mode)
	}
	return nil, fmt.Errorf("source %d of the projected volume is of a kind that the local cluster does not know", i)
}

func (s *Set) configMap(ctx context.Context, pod *corev1.Pod, name string, items []corev1.KeyToPath, mode *int32, opt *bool) (files, error) {
	cm, err := s.cluster.ConfigMap(ctx, pod.Namespace, name)
	if err != nil {
		return nil, optional(err, opt)
	}
	return configmap.MakePayload(items, cm, defaulted(mode), nil, opt != nil && *opt)
}

func (s *Set) secret(ctx context.Context, pod *corev1.Pod, name string, items []corev1.KeyToPath, mode *int32, opt *bool) (files, error) {
	object, err := s.cluster.Secret(ctx, pod.Namespace, name)
	if err != nil {
		return nil, optional(err, opt)
	}
	return secret.MakePayload(items, object, defaulted(mode), nil, opt != nil && *opt)
}

func (s *Set) downward(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, mode *int32) (files, error) {
	out := files{}
	for _, item := range items {
		var text string
		var err error
		switch {
		case item.FieldRef != nil:
			text, err = environ.Field(pod, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			text, err = environ.Resource(pod, item.ResourceFieldRef.ContainerName, item.ResourceFieldRef, s.allocatable)
		}
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", item.Path, err)
		}
		out[filepath.Clean(item.Path)] = file([]byte(text), item.Mode, mode)
	}
	return out, nil
}

// token keeps a token until it is due, so that a volume whose other content
// changed does not cost a new one.
func (s *Set) token(ctx context.Context, pod *corev1.Pod, key string, p *corev1.ServiceAccountTokenProjection, mode *int32) (files, error) {
	t, ok := s.tokens[key]
	if !ok || !time.Now().Before(t.due()) {
		var err error
		if t, err = s.cluster.Token(ctx, pod, p); err != nil {
			return nil, fmt.Errorf("failed to fetch token: %w", err)
		}
		s.tokens[key] = t
	}
	return files{p.Path: file([]byte(t.Text), nil, mode)}, nil
}

func file(data []byte, own, whole *int32) volumeutil.FileProjection {
	if own == nil {
		own = defaulted(whole)
	}
	return volumeutil.FileProjection{Data: data, Mode: *own}
}

// defaulted is for pods that did not pass the API server's defaulting.
func defaulted(mode *int32) *int32 {
	if mode == nil {
		return new(int32(0o644))
	}
	return mode
}

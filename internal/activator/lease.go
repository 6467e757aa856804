package activator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"
)

// fieldManager owns what an activator writes.
const fieldManager = "dynamo-activator"

// mostModels and mostBytes are how many names of models are written at most, and how many
// bytes they take: a Lease is no database, and 256 KiB is all that the annotations of an
// object may have.
const (
	mostModels = 500
	mostBytes  = 64 << 10
)

// contention is how long a write gives way to those of other frontends.
var contention = wait.Backoff{Steps: 8, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 1}

// KubernetesLease is a Lease in the cluster.
type KubernetesLease struct {
	leases    coordinationv1.LeaseInterface
	name, pod string
}

// Connect finds the cluster by a kubeconfig file, or as a pod when it is empty.
func Connect(kubeconfig, namespace, name, pod string) (*KubernetesLease, error) {
	rules := clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.UserAgent = fieldManager
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &KubernetesLease{leases: client.Leases(namespace), name: name, pod: pod}, nil
}

// Read implements Lease. What cannot be read in it is not known.
func (l *KubernetesLease) Read(ctx context.Context) (told Told, err error) {
	lease, err := l.leases.Get(ctx, l.name, metav1.GetOptions{})
	if err != nil {
		return told, fmt.Errorf("read Lease %s: %w", l.name, err)
	}
	if at := lease.Spec.RenewTime; at != nil {
		told.LastRequest = at.Time
	}
	told.Models = modelsOf(lease.Annotations[v1alpha1.AnnotationActivationModels])
	told.Declared = modelsOf(lease.Annotations[v1alpha1.AnnotationActivationDeclared])
	if seconds, err := strconv.ParseFloat(lease.Annotations[v1alpha1.AnnotationActivationSeconds], 64); err == nil && seconds > 0 && seconds < 86400 {
		told.Start = time.Duration(seconds * float64(time.Second))
	}
	return told, nil
}

// modelsOf are those of a JSON list.
func modelsOf(text string) []string {
	var all []string
	if json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all
}

// Renew implements Lease. Where the Lease takes no annotation any more, such as one that
// somebody has filled, the time is told alone: without it nobody would be woken.
func (l *KubernetesLease) Renew(ctx context.Context, told Told) error {
	err := l.write(ctx, told.LastRequest, told.annotations())
	if apierrors.IsInvalid(err) {
		err = l.write(ctx, told.LastRequest, map[string]string{})
	}
	if err != nil {
		return fmt.Errorf("renew Lease %s: %w", l.name, err)
	}
	return nil
}

// write never puts a time back: frontends tell at any moment of requests that they had a
// while before, and a graph whose last request seems to be long ago sleeps.
func (l *KubernetesLease) write(ctx context.Context, at time.Time, annotations map[string]string) error {
	return retry.RetryOnConflict(contention, func() error {
		stored, err := l.leases.Get(ctx, l.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		spec := map[string]any{}
		if last := stored.Spec.RenewTime; last == nil || last.Before(&metav1.MicroTime{Time: at}) || last.After(time.Now().Add(dormancy.Skew)) {
			spec = map[string]any{"holderIdentity": l.pod, "renewTime": metav1.NewMicroTime(at)}
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": annotations, "resourceVersion": stored.ResourceVersion},
			"spec":     spec,
		})
		if err != nil {
			return err
		}
		_, err = l.leases.Patch(ctx, l.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		return err
	})
}

// annotations are what is remembered beside the time.
func (t Told) annotations() map[string]string {
	annotations := map[string]string{}
	if models := fitting(t.Models); len(models) > 0 {
		if text, err := json.Marshal(models); err == nil {
			annotations[v1alpha1.AnnotationActivationModels] = string(text)
		}
	}
	if t.Start > 0 {
		annotations[v1alpha1.AnnotationActivationSeconds] = strconv.FormatFloat(t.Start.Seconds(), 'f', 1, 64)
	}
	return annotations
}

// fitting are the first models that there is room for.
func fitting(models []string) []string {
	bytes := 0
	for n, model := range models {
		if bytes += len(model) + len(`"",`); n == mostModels || bytes > mostBytes {
			return models[:n]
		}
	}
	return models
}

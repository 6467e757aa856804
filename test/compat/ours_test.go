package compat

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/adoption"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/manifest"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/sshkey"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// platform is the configuration that the original was recorded under.
func platform(path workload.Provider) render.Platform {
	c := config.Default()
	c.Endpoints.NATS = "nats://nats:4222"
	c.Ingress.HostSuffix = "example.com"
	c.MPI.SSHSecret = "mpi-ssh"
	c.Roles = config.Roles{Planner: "planner-cr", Picker: "epp-cr"}
	p := c.Platform()
	p.Capabilities = snapshot.Capabilities{
		snapshot.APILeaderWorkerSet: true, snapshot.APIVolcano: true, snapshot.APIIstio: true, snapshot.APIInference: true, snapshot.APIDevices: true,
		snapshot.APIGrove: path == workload.ProviderGrove,
	}
	return p
}

// namespaceOf is the namespace in which the original was given a manifest.
// Names and values of objects contain it.
func namespaceOf(manifest string) string {
	sum := sha1.Sum([]byte(manifest))
	return "m-" + hex.EncodeToString(sum[:4])
}

// rehearsal is the cluster's client with every apply a dry run. It keeps what
// the API server would have stored.
type rehearsal struct {
	client.Client
	offline bool
	// pullSecrets are those that the manifest brings.
	pullSecrets snapshot.PullSecrets
	stored      []*unstructured.Unstructured
	// left is what the original made, and kept what becomes of that when it is taken over.
	left, kept []*unstructured.Unstructured
}

// pullSecrets reads the registries that Secrets of a manifest are for.
func pullSecrets(t *testing.T, documents []corpus.Document) snapshot.PullSecrets {
	t.Helper()
	known := snapshot.PullSecrets{}
	for _, d := range documents {
		if d.Object.GetKind() != "Secret" {
			continue
		}
		secret := &corev1.Secret{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object.Object, secret); err != nil {
			t.Fatal(err)
		}
		text := cmp.Or(secret.StringData[corev1.DockerConfigJsonKey], string(secret.Data[corev1.DockerConfigJsonKey]))
		var config struct{ Auths map[string]any }
		if text == "" || json.Unmarshal([]byte(text), &config) != nil {
			continue
		}
		for registry := range config.Auths {
			known[registry] = append(known[registry], secret.Name)
		}
	}
	return known
}

// Apply implements client.Client.
func (r *rehearsal) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	if err := r.Client.Apply(ctx, object, append(options, client.DryRunAll)...); err != nil {
		return err
	}
	content, ok := object.(interface{ UnstructuredContent() map[string]any })
	if !ok {
		return fmt.Errorf("rehearse an apply: %T holds no fields", object)
	}
	stored := &unstructured.Unstructured{Object: content.UnstructuredContent()}
	r.stored = append(r.stored, stored.DeepCopy())
	return nil
}

// Get implements client.Client: what was rehearsed is there, for a writer that
// asks whether an owner still is.
func (r *rehearsal) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	partial, ok := into.(*metav1.PartialObjectMetadata)
	for _, stored := range r.stored {
		if ok && stored.GroupVersionKind() == partial.GroupVersionKind() && client.ObjectKeyFromObject(stored) == key {
			partial.SetName(stored.GetName())
			partial.SetNamespace(stored.GetNamespace())
			partial.SetUID(stored.GetUID())
			return nil
		}
	}
	return r.Client.Get(ctx, key, into, options...)
}

// ours are the objects that this operator makes of a manifest, as an API server
// stores them: the graphs themselves, their children, and those of their
// components.
func ours(t *testing.T, e edition, path workload.Provider, manifest string, documents []corpus.Document) []*unstructured.Unstructured {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(manifest)}}
	r := &rehearsal{Client: unsent{}, offline: e.offline, pullSecrets: pullSecrets(t, documents)}
	if !e.offline {
		r.Client = e.cluster.Client
		if err := client.IgnoreAlreadyExists(r.Create(t.Context(), namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range documents {
		if err := r.document(t.Context(), d, namespace.Name, path, e); err != nil {
			e.failed(t, path, d, err)
		}
	}
	return r.stored
}

// document rehearses what becomes of one object of a manifest.
func (r *rehearsal) document(ctx context.Context, d corpus.Document, namespace string, path workload.Provider, e edition) error {
	kind := d.Object.GetKind()
	if kind != v1alpha1.KindDynamoGraphDeployment && kind != v1alpha1.KindDynamoComponentDeployment {
		return nil
	}
	// The operator works on the stored version alone.
	converted, err := conversion.Convert(d.JSON, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		return err
	}
	applied := &unstructured.Unstructured{}
	if err := applied.UnmarshalJSON(converted.JSON); err != nil {
		return err
	}
	unstructured.RemoveNestedField(applied.Object, "status")
	applied.SetNamespace(namespace)
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("kubectl")); err != nil {
		return err
	}
	p := e.platform(path)
	p.Pod.PullSecrets = r.pullSecrets
	if kind == v1alpha1.KindDynamoComponentDeployment {
		return r.component(ctx, applied, p)
	}
	return r.graph(ctx, applied, path, p)
}

func (r *rehearsal) graph(ctx context.Context, applied *unstructured.Unstructured, path workload.Provider, p render.Platform) error {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(applied.Object, dgd); err != nil {
		return err
	}
	if chosen := workload.Chosen(dgd.Annotations); chosen != "" {
		path = chosen
	}
	g, err := graph.FromGraphDeployment(dgd, p.Defaults)
	if err != nil {
		return err
	}
	wanted, failed := render.Graph(dgd, g, path, p)
	if g.NeedsSSH() {
		key, err := sshkey.New(dgd.Namespace, p.Pod.SSHSecret)
		if err != nil {
			return err
		}
		wanted = append(wanted, key)
	}
	before := len(r.stored)
	all := []error{failed, r.sync(ctx, dgd, wanted)}
	for _, child := range r.stored[before:] {
		if child.GetKind() == v1alpha1.KindDynamoComponentDeployment {
			if err := r.component(ctx, child, p); err != nil {
				all = append(all, fmt.Errorf("component %s: %w", child.GetName(), err))
			}
		}
	}
	return errors.Join(all...)
}

func (r *rehearsal) component(ctx context.Context, stored *unstructured.Unstructured, p render.Platform) error {
	dcd := &v1alpha1.DynamoComponentDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, dcd); err != nil {
		return err
	}
	owned, err := r.workloads(dcd.Name)
	if err != nil {
		return err
	}
	p.Defaults.Running.NamespaceLabel = graph.ReadRunning(dcd, owned).NamespaceLabel
	g, err := graph.FromComponentDeployment(dcd, p.Defaults)
	if err != nil {
		return err
	}
	wanted, err := render.Component(g, p)
	return errors.Join(err, r.sync(ctx, dcd, wanted))
}

// workloads are those that the original made for a component.
func (r *rehearsal) workloads(component string) ([]graph.Object, error) {
	var all []graph.Object
	for _, left := range r.left {
		var into graph.Object
		switch left.GetKind() {
		case "Deployment":
			into = &appsv1.Deployment{}
		case "LeaderWorkerSet":
			into = &lwsv1.LeaderWorkerSet{}
		}
		if into == nil || !slices.ContainsFunc(left.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Name == component }) {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(left.Object, into); err != nil {
			return nil, err
		}
		all = append(all, into)
	}
	return all, nil
}

// adopt notes what a workload is after it was taken over.
func (r *rehearsal) adopt(w graph.Desired, fields map[string]any) error {
	kept := fields
	for _, live := range r.left {
		wanted := &unstructured.Unstructured{Object: fields}
		if !w.RetainTemplates || live.GetKind() != wanted.GetKind() || live.GetName() != wanted.GetName() {
			continue
		}
		record, err := adoption.RecordOf(fields, live.Object)
		if err != nil {
			return err
		}
		if kept, err = adoption.Retain(fields, live.Object, record); err != nil {
			return err
		}
	}
	r.kept = append(r.kept, &unstructured.Unstructured{Object: kept})
	return nil
}

// sync sends objects by the operator's own writer.
func (r *rehearsal) sync(ctx context.Context, owner graph.Object, wanted []graph.Desired) error {
	if r.offline {
		for _, w := range wanted {
			fields, err := manifest.Of(w, owner, offlineScheme)
			if err != nil {
				return err
			}
			r.stored = append(r.stored, &unstructured.Unstructured{Object: fields})
			if err := r.adopt(w, fields); err != nil {
				return err
			}
		}
		return nil
	}
	applier, err := apply.New(r, r)
	if err != nil {
		return err
	}
	_, err = applier.Apply(ctx, owner, apply.Plan{Children: wanted})
	return err
}

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/render"
	"github.com/dynamo-operator/dynamo-operator/test/prerequisite"
)

func needsOf(m manifest) prerequisite.Needs {
	var documents []map[string]any
	for _, d := range m.documents {
		documents = append(documents, d.Object.Object)
	}
	return prerequisite.Of(documents...)
}

// supply makes what objects refer to and is not among them.
func (w world) supply(given []*unstructured.Unstructured) {
	w.Helper()
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(resourcev1.SchemeGroupVersion.WithKind("DeviceClassList"))
	if err := w.cluster.Client.List(w.ctx, found); err != nil {
		w.Fatal(err)
	}
	var classes []string
	for _, class := range found.Items {
		classes = append(classes, class.Name)
	}
	var documents []map[string]any
	for _, o := range given {
		documents = append(documents, o.Object)
	}
	needs := prerequisite.Of(documents...)
	objects, err := needs.Objects(w.namespace, classes)
	if err != nil {
		w.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(given, func(g *unstructured.Unstructured) bool {
			return g.GetKind() == o.GetKind() && g.GetName() == o.GetName()
		})
	})
	if err := w.cluster.Apply(w.ctx, objects); err != nil {
		w.Fatal(err)
	}
}

// unplaceable says why the pods of a manifest find no node anywhere: one must be
// near pods that none of them is. Otherwise it is empty.
func unplaceable(t *testing.T, m manifest) string {
	t.Helper()
	var text strings.Builder
	for _, d := range m.documents {
		fmt.Fprintf(&text, "%s\n---\n", d.JSON)
	}
	if !strings.Contains(text.String(), `"podAffinity"`) {
		return ""
	}
	var made bytes.Buffer
	command := render.Command()
	command.SetIn(strings.NewReader(text.String()))
	command.SetOut(&made)
	command.SetErr(io.Discard)
	command.SetArgs([]string{"-f", "-"})
	if err := command.Execute(); err != nil {
		t.Fatalf("render %s: %v", m.file, err)
	}
	objects, err := installation.Decode(&made)
	if err != nil {
		t.Fatal(err)
	}
	var pods []corev1.PodTemplateSpec
	for _, o := range objects {
		for _, path := range [][]string{{"spec", "template"}, {"spec", "leaderWorkerTemplate", "leaderTemplate"}, {"spec", "leaderWorkerTemplate", "workerTemplate"}} {
			template, found, err := unstructured.NestedMap(o.Object, path...)
			if !found || err != nil || o.GetKind() != "Deployment" && o.GetKind() != "LeaderWorkerSet" {
				continue
			}
			var pod corev1.PodTemplateSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod); err != nil {
				t.Fatal(err)
			}
			pods = append(pods, pod)
		}
	}
	for _, pod := range pods {
		if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
			continue
		}
		for _, term := range pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(pods, func(other corev1.PodTemplateSpec) bool { return selector.Matches(labels.Set(other.Labels)) }) {
				return fmt.Sprintf("a pod must be near pods with %s, and none of its own has these labels, with the original neither", selector)
			}
		}
	}
	return ""
}

// fleet is the nodes that a cluster has for manifests.
type fleet struct {
	pools                 []prerequisite.Pool
	topologies, resources map[string]bool
	// plain is how many have no labels but their own.
	plain int
}

// fleetFor has nodes for the largest manifests that are deployed at once.
func fleetFor(manifests []manifest, atOnce int) fleet {
	f := fleet{topologies: map[string]bool{}, resources: map[string]bool{}}
	var plain []int
	for _, m := range manifests {
		needs := needsOf(m)
		// Pods of one manifest that want the same nodes are counted once.
		pools := prerequisite.Merge(needs.Pools(m.pods()), 1)
		f.pools = append(f.pools, pools...)
		plain = append(plain, m.nodes())
		for _, name := range needs.Topologies {
			f.topologies[name] = true
		}
		for _, name := range needs.Resources {
			f.resources[name] = true
		}
	}
	f.pools = prerequisite.Merge(f.pools, atOnce)
	f.plain = prerequisite.Largest(plain, atOnce)
	return f
}

// atOnce is how many tests run at a time.
func atOnce(t *testing.T) int {
	t.Helper()
	value, known := flag.Lookup("test.parallel").Value.(flag.Getter)
	if !known {
		t.Fatal("the number of parallel tests is not known")
	}
	return value.Get().(int)
}

func (f fleet) count() int {
	count := f.plain
	for _, pool := range f.pools {
		count += pool.Nodes
	}
	return count
}

// usual reports whether nodes as they are will do.
func (f fleet) usual() bool {
	return len(f.pools)+len(f.topologies) == 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(f.resources)), func(name string) bool {
		return name != "nvidia.com/gpu"
	})
}

// furnish gives a cluster's nodes their labels, and resources as other drivers
// would advertise them.
func (f fleet) furnish(ctx context.Context, cluster *localenv.Cluster) error {
	var list corev1.NodeList
	if err := cluster.Client.List(ctx, &list); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var pooled []map[string]string
	for _, pool := range f.pools {
		for range pool.Nodes {
			pooled = append(pooled, pool.Labels)
		}
	}
	for i := range list.Items {
		node := &list.Items[i]
		own, resources := map[string]string{}, map[corev1.ResourceName]string{}
		for topology := range f.topologies {
			if _, has := node.Labels[topology]; !has {
				own[topology] = "here"
			}
		}
		if i < len(pooled) {
			maps.Copy(own, pooled[i])
		}
		for name := range f.resources {
			if _, has := node.Status.Capacity[corev1.ResourceName(name)]; !has {
				resources[corev1.ResourceName(name)] = "64"
			}
		}
		text, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"labels": own},
			"status":   map[string]any{"capacity": resources, "allocatable": resources},
		})
		if err != nil {
			return err
		}
		// The one takes labels alone, the other the rest.
		body := client.RawPatch(types.MergePatchType, text)
		if err := cluster.Client.Patch(ctx, node, body); err != nil {
			return fmt.Errorf("label node %s: %w", node.Name, err)
		}
		if err := cluster.Client.Status().Patch(ctx, node, body); err != nil {
			return fmt.Errorf("advertise resources of node %s: %w", node.Name, err)
		}
	}
	return nil
}

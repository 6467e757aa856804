package playground

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	manifests "github.com/dynamo-operator/dynamo-operator/config"
	"github.com/dynamo-operator/dynamo-operator/config/crd"
)

// OperatorKey names the operator's Deployment.
var OperatorKey = types.NamespacedName{Namespace: "dynamo-system", Name: "dynamo-operator-controller-manager"}

// InstallAPI installs the definitions of the operator's API and waits until the
// server serves them.
func (c *Cluster) InstallAPI(ctx context.Context) error {
	files, err := fs.Glob(crd.Manifests, "*.yaml")
	if err != nil {
		return err
	}
	objects, err := decodeAll(crd.Manifests, files)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, objects); err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.Eventually(ctx, object.GetName()+" to be served", func(ctx context.Context) error {
			return c.established(ctx, object.GetName())
		}); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) established(ctx context.Context, name string) error {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, definition); err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(conditions, func(item any) bool {
		condition, _ := item.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	}) {
		return fmt.Errorf("%s is not established", name)
	}
	return nil
}

// InstallOperator installs the operator with the rights that it is shipped
// with, and waits until it is ready.
func (c *Cluster) InstallOperator(ctx context.Context) error {
	objects, err := decodeAll(manifests.Operator, []string{"manager/manager.yaml", "rbac/role.yaml", "rbac/binding.yaml", "rbac/planner.yaml", "rbac/epp.yaml"})
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, objects); err != nil {
		return err
	}
	return c.Eventually(ctx, "the operator to be ready", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := c.Client.Get(ctx, OperatorKey, d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < 1 {
			return fmt.Errorf("%d replicas available", d.Status.AvailableReplicas)
		}
		return nil
	})
}

// Apply sends objects to the cluster by server-side apply, in their order.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		object = object.DeepCopy()
		// A kind whose definition is new is not in the client's map yet.
		err := c.Eventually(ctx, object.GetKind()+" to be known", func(ctx context.Context) error {
			err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("playground"), client.ForceOwnership)
			if meta.IsNoMatchError(err) {
				return err
			}
			if err != nil {
				return permanent{fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Decode reads a stream of YAML documents; those without a namespace that need
// one get the given.
func (c *Cluster) Decode(r io.Reader, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := decode(r)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		namespaced, err := c.Client.IsObjectNamespaced(object)
		if err != nil {
			return nil, err
		}
		if namespaced && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
	}
	return objects, nil
}

func decodeAll(from fs.FS, files []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, err
		}
		objects, err := decode(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

func decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

package localenv

import (
	"context"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
)

// OperatorKey names the operator's Deployment.
var OperatorKey = types.NamespacedName{Namespace: installation.Namespace, Name: installation.Deployment}

func (c *Cluster) installer() installation.Installer {
	return installation.Installer{Client: c.Client, Owner: "localenv"}
}

// InstallAPI installs the definitions of the operator's API and waits until the
// server serves them.
func (c *Cluster) InstallAPI(ctx context.Context) error {
	return c.installer().Definitions(ctx)
}

// InstallOperator installs the operator with the rights that it is shipped
// with, in the size of one machine, and waits until it is ready and every version of
// the API answers.
func (c *Cluster) InstallOperator(ctx context.Context) error { return c.InstallOperatorWith(ctx, "") }

// InstallOperatorWith does, with lines that are added to the operator's configuration.
func (c *Cluster) InstallOperatorWith(ctx context.Context, lines string) error {
	objects, err := installation.Small()
	if err != nil {
		return err
	}
	if err := configure(objects, lines); err != nil {
		return err
	}
	if err := c.installer().Operator(ctx, objects); err != nil {
		return err
	}
	if err := c.installer().Ready(ctx); err != nil {
		return err
	}
	return c.installer().Answers(ctx, true)
}

// configFile is the operator's, in its ConfigMap.
const configFile = "config.yaml"

func configure(objects []*unstructured.Unstructured, lines string) error {
	if lines == "" {
		return nil
	}
	for _, o := range objects {
		text, found, err := unstructured.NestedString(o.Object, "data", configFile)
		if err == nil && found && o.GetKind() == "ConfigMap" {
			return unstructured.SetNestedField(o.Object, text+lines+"\n", "data", configFile)
		}
	}
	return errors.New("the operator has no configuration to add to")
}

// Apply sends objects to the cluster by server-side apply, in their order.
func (c *Cluster) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	return c.installer().Apply(ctx, objects)
}

// Decode reads a stream of YAML documents; those without a namespace that need
// one get the given.
func (c *Cluster) Decode(r io.Reader, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := installation.Decode(r)
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

package installation

import (
	"context"
	"fmt"
	"io"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
)

// DefinitionsHere are the definitions as this cluster is to have them: a version
// that a converter serves stays served, and one that is frozen stays frozen, so that
// an update takes it from nobody.
func (i Installer) DefinitionsHere(ctx context.Context) ([]*unstructured.Unstructured, error) {
	definitions, err := Definitions()
	if err != nil {
		return nil, err
	}
	for _, object := range definitions {
		if _, err := i.adapt(ctx, object); err != nil {
			return nil, err
		}
	}
	return definitions, nil
}

// define applies a definition as this cluster is to have it, and only over the one
// that was read for it: v1beta1 that is withdrawn meanwhile would be served again,
// by nobody.
func (i Installer) define(ctx context.Context, shipped *unstructured.Unstructured) error {
	return until(ctx, "definition "+shipped.GetName()+" to be left alone by others", func(ctx context.Context) error {
		object := shipped.DeepCopy()
		live, err := i.adapt(ctx, object)
		if err != nil {
			return permanent{err}
		}
		object.SetResourceVersion(live)
		err = i.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(i.Owner), client.ForceOwnership)
		if err != nil && !apierrors.IsConflict(err) {
			return permanent{fmt.Errorf("apply definition %s: %w", object.GetName(), err)}
		}
		return err
	})
}

// adapt makes a definition that is shipped what this cluster is to have, and returns
// the resource version of the one that is there; empty if there is none.
func (i Installer) adapt(ctx context.Context, object *unstructured.Unstructured) (resourceVersion string, err error) {
	live := &apiextensionsv1.CustomResourceDefinition{}
	err = i.Client.Get(ctx, client.ObjectKeyFromObject(object), live)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read definition %s: %w", object.GetName(), err)
	}
	shipped := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, shipped); err != nil {
		return "", fmt.Errorf("definition %s: %w", object.GetName(), err)
	}
	definition.Keep(shipped, live)
	if err := keep(object, shipped); err != nil {
		return "", fmt.Errorf("definition %s: %w", object.GetName(), err)
	}
	return live.ResourceVersion, nil
}

// keep writes which versions are served, and what is frozen, into a definition, and
// nothing else.
func keep(object *unstructured.Unstructured, as *apiextensionsv1.CustomResourceDefinition) error {
	versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for n := range as.Spec.Versions {
		v := &as.Spec.Versions[n]
		if v.Deprecated { // frozen
			if versions[n], err = runtime.DefaultUnstructuredConverter.ToUnstructured(v); err != nil {
				return err
			}
		} else if fields, ok := versions[n].(map[string]any); ok {
			fields["served"] = v.Served
		}
	}
	return unstructured.SetNestedSlice(object.Object, versions, "spec", "versions")
}

// WithdrawBeta freezes v1beta1, because its converter is about to go or gone: whatever
// reads by the preferred version, such as the garbage collector and the deletion of
// namespaces, would wait for it. Objects stay and are read as v1alpha1.
func (i Installer) WithdrawBeta(ctx context.Context, out io.Writer) error {
	withdrawn := 0
	for _, name := range definition.Converted {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := i.Client.Get(ctx, types.NamespacedName{Name: name}, crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read definition %s: %w", name, err)
		}
		if definition.StoredAsBeta(crd) {
			fmt.Fprintf(out, "· %s: objects are stored as v1beta1, and cannot be read until an operator is back\n", name)
		}
		patch := definition.Withdraw(crd)
		if patch == nil {
			continue
		}
		raw, err := patch.JSON()
		if err != nil {
			return err
		}
		if err := i.Client.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, raw), client.FieldOwner(i.Owner)); err != nil {
			return fmt.Errorf("withdraw v1beta1 of definition %s: %w", name, err)
		}
		withdrawn++
	}
	if withdrawn > 0 {
		fmt.Fprintf(out, "✓ v1beta1 of %d definitions is no longer converted, and shows objects as v1alpha1\n", withdrawn)
	}
	return nil
}

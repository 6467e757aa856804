// Package installation puts the operator into a cluster and takes it out again:
// the same objects in the same order for the demo, the tests, the command line
// and the operator's own init container.
package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
)

// Namespace and Deployment say where the operator is installed.
const (
	Namespace  = config.SystemNamespace
	Deployment = "dynamo-operator-controller-manager"
)

// Configuration is the ConfigMap that the operator is configured by, and MetricsToken the
// Secret with the token of scrapers of an operator for one namespace.
const (
	Configuration = "dynamo-operator-config"
	MetricsToken  = "dynamo-operator-metrics-token" //nolint:gosec // a name
)

// Installer writes what is shipped.
type Installer struct {
	Client client.Client
	// Owner is the field manager under which it writes.
	Owner string
	// Images are what runs, instead of the images of this build.
	Images Images
	// Home is where the operator is; empty: Namespace.
	Home string
}

// deployment names the operator's.
func (i Installer) deployment() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(i.Home, Namespace), Name: Deployment}
}

// Definitions applies the definitions of the API and waits until the server
// serves them.
func (i Installer) Definitions(ctx context.Context) error {
	definitions, err := Definitions()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		if err := i.define(ctx, definition); err != nil {
			return err
		}
	}
	for _, definition := range definitions {
		if err := until(ctx, definition.GetName()+" to be served", func(ctx context.Context) error {
			return i.established(ctx, definition.GetName())
		}); err != nil {
			return err
		}
	}
	return nil
}

func (i Installer) established(ctx context.Context, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := i.Client.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
		return err
	}
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		return fmt.Errorf("%s is not established", name)
	}
	// Discovery follows a moment later, and whoever writes an object next asks it.
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		if _, err := i.Client.RESTMapper().RESTMapping(kind, version.Name); err != nil {
			return fmt.Errorf("%s is not discovered: %w", name, err)
		}
	}
	return nil
}

// Answers waits until every version that is served of our kinds answers: API servers
// list a version a moment before they serve it. With beta, it waits for v1beta1 to be
// served, which the operator sees to once it is ready.
func (i Installer) Answers(ctx context.Context, beta bool) error {
	definitions, err := Definitions()
	if err != nil {
		return err
	}
	for _, d := range definitions {
		name := d.GetName()
		if err := until(ctx, "every version of "+name+" to answer", func(ctx context.Context) error {
			return i.answers(ctx, name, beta && slices.Contains(definition.Converted, name))
		}); err != nil {
			return err
		}
	}
	return nil
}

func (i Installer) answers(ctx context.Context, name string, all bool) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := i.Client.Get(ctx, types.NamespacedName{Name: name}, crd); err != nil {
		return err
	}
	for _, version := range crd.Spec.Versions {
		if all && (!version.Served || version.Deprecated) { // which is frozen
			return fmt.Errorf("%s of %s is not served", version.Name, name)
		}
		if !version.Served {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.ListKind})
		err := i.Client.List(ctx, list, client.InNamespace(cmp.Or(i.Home, Namespace)), client.Limit(1))
		if err != nil && !apierrors.IsForbidden(err) { // which is an answer, too
			return fmt.Errorf("%s of %s: %w", version.Name, name, err)
		}
	}
	return nil
}

// Operator applies the operator with the rights that it comes with.
func (i Installer) Operator(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := i.Images.set(object); err != nil {
			return fmt.Errorf("images of %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return i.Apply(ctx, objects)
}

// Ready waits until every replica of the operator that is asked for is up.
func (i Installer) Ready(ctx context.Context) error {
	return until(ctx, "the operator to be ready", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := i.Client.Get(ctx, i.deployment(), d); err != nil {
			return err
		}
		wanted := ptr.Deref(d.Spec.Replicas, 1)
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas < wanted || s.AvailableReplicas < wanted || s.Replicas > s.UpdatedReplicas {
			return fmt.Errorf("%d of %d replicas available", d.Status.AvailableReplicas, wanted)
		}
		return nil
	})
}

// Apply sends objects by server-side apply, in their order. A kind whose
// definition is new may need a moment until it is known.
func (i Installer) Apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := until(ctx, object.GetKind()+" to be known", func(ctx context.Context) error {
			err := i.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(i.Owner), client.ForceOwnership)
			if err != nil && !meta.IsNoMatchError(err) {
				return permanent{fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)}
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes objects against their order and waits until they are gone.
func (i Installer) Delete(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range slices.Backward(objects) {
		policy := metav1.DeletePropagationBackground
		if object.GetKind() == "Deployment" { // its pods go before it: one that is left may still write
			policy = metav1.DeletePropagationForeground
		}
		if err := i.Client.Delete(ctx, object.DeepCopy(), client.PropagationPolicy(policy)); err != nil {
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				continue
			}
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if err := until(ctx, object.GetKind()+" "+object.GetName()+" to go", func(ctx context.Context) error {
			err := i.Client.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
			switch {
			case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
				return nil
			case err != nil:
				return err
			default:
				return fmt.Errorf("%s %s is still there", object.GetKind(), object.GetName())
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// permanent marks an error that trying again does not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// until tries until it works or the context ends, and says what it waited for.
func until(ctx context.Context, what string, try func(context.Context) error) error {
	last := errors.New("not asked yet")
	err := wait.PollUntilContextCancel(ctx, 250*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		switch err := try(ctx); p := err.(type) { //nolint:errorlint // marked right here, never wrapped
		case nil:
			return true, nil
		case permanent:
			return false, p.error
		default:
			// A question that time cut short says nothing about what was waited for. A
			// client's limiter looks at the deadline itself, before the context has ended.
			deadline, limited := ctx.Deadline()
			if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !(limited && time.Now().After(deadline)) {
				last = err
			}
			return false, nil
		}
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for %s: %w: %w", what, ctx.Err(), last)
	}
	return err
}

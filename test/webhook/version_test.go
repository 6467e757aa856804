package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/definition"
)

func definitionOf(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, cluster.Client.Get(ctx, types.NamespacedName{Name: name}, crd)
}

// allServed holds when v1beta1 of each kind is.
func allServed(ctx context.Context) error {
	for _, name := range definition.Converted {
		crd, err := definitionOf(ctx, name)
		if err != nil {
			return err
		}
		if !definition.Served(crd) {
			return fmt.Errorf("%s is not served", name)
		}
	}
	return servesBeta(ctx)
}

// TestTheVersionIsServedAgain after somebody has applied the definitions as they are
// shipped, and stays served if that was a tool of ours.
func TestTheVersionIsServedAgain(t *testing.T) {
	eventually(t, "v1beta1 to be served", allServed)
	if err := cluster.InstallAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := allServed(t.Context()); err != nil {
		t.Errorf("an update of the definitions took it away: %v", err)
	}
	for what, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition) definition.Patch{
		"taken away": definition.Suspend, "frozen": definition.Withdraw,
	} {
		crd, err := definitionOf(t.Context(), definition.Converted[3])
		if err != nil {
			t.Fatal(err)
		}
		patch, err := change(crd).JSON()
		if err != nil {
			t.Fatal(err)
		}
		before := crd.Spec.Versions
		if err := cluster.Client.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, patch)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "v1beta1 to be served again, which was "+what, allServed)
		if crd, err = definitionOf(t.Context(), crd.Name); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, crd.Spec.Versions); diff != "" {
			t.Errorf("the version that was %s is served with\n%s", what, diff)
		}
	}
}

// TestObjectsStoredAsBetaAreStoredAnew has the API server store objects as v1beta1,
// as with the original, and gives the definition back: the leader stores them as
// v1alpha1 and says so.
func TestObjectsStoredAsBetaAreStoredAnew(t *testing.T) {
	for _, c := range []struct{ definition, kind, spec string }{
		{"dynamographdeploymentrequests.nvidia.com", "DynamoGraphDeploymentRequest", `{model: Qwen/Qwen3-0.6B, backend: vllm, profilingConfig: {profilerImage: "dynamo-profiler:dev",
			config: {sla: {isl: 1000, osl: 50, ttft: 1000, itl: 50}, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}, hardware: {numGpusPerNode: 8, maxNumGpusPerEngine: 1}}}}`},
		{definition.Adapters, "DynamoGraphDeploymentScalingAdapter", `{replicas: 1, dgdRef: {name: none, serviceName: a}}`},
	} {
		t.Run(c.kind, func(t *testing.T) { storedAnew(t, c.definition, c.kind, c.spec) })
	}
}

func storedAnew(t *testing.T, name, kind, spec string) {
	t.Helper()
	eventually(t, "v1beta1 to be served", allServed)
	stores := func(alpha bool) {
		eventually(t, "the definition to be changed", func(ctx context.Context) error {
			crd, err := definitionOf(ctx, name)
			if err != nil {
				return err
			}
			crd.Spec.Versions[0].Storage, crd.Spec.Versions[1].Storage = alpha, !alpha
			return cluster.Client.Update(ctx, crd)
		})
	}
	storedVersions := func(ctx context.Context, beta bool) error {
		crd, err := definitionOf(ctx, name)
		if err == nil && definition.StoredAsBeta(crd) != beta {
			err = fmt.Errorf("stored versions %v", crd.Status.StoredVersions)
		}
		return err
	}
	ns := namespace(t, nil)
	stores(false)
	eventually(t, "v1beta1 to be a stored version", func(ctx context.Context) error { return storedVersions(ctx, true) })
	object := graphOf(ns, "r", spec)
	object.SetKind(kind)
	eventually(t, "an object that is stored as v1beta1", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(impatient.Create(ctx, object.DeepCopy()))
	})
	stores(true)
	eventually(t, "v1alpha1 to be the only stored version", func(ctx context.Context) error { return storedVersions(ctx, false) })
	if err := cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "r"}, object); err != nil {
		t.Error(err)
	}
	eventually(t, "v1beta1 to be served", allServed)
}

// TestWithoutAConverterNothingIsServed takes the converter away from API servers that
// serve v1beta1, as an uninstallation without a word would. Namespaces cannot be deleted
// then, which is why v1beta1 is withdrawn first; and an operator that runs takes it back
// by itself.
func TestWithoutAConverterNothingIsServed(t *testing.T) {
	if !*measure {
		t.Skip("takes minutes: run make rotation; package apiversion takes v1beta1 back on a clock of its own")
	}
	eventually(t, "v1beta1 to be served", allServed)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "held-"}}
	if err := cluster.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Create(t.Context(), graphOf(ns.Name, "g", `{services: {a: {replicas: 0}}}`)); err != nil {
		t.Fatal(err)
	}
	point := func(selector string) {
		t.Helper()
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: "dynamo-operator-webhook-service"}}
		if err := cluster.Client.Patch(context.Background(), service, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"away":`+selector+`}}}`))); err != nil {
			t.Fatal(err)
		}
	}
	point(`"yes"`)
	defer func() {
		point(`null`)
		eventually(t, "v1beta1 to be served again", allServed)
	}()
	eventually(t, "nobody to convert", func(ctx context.Context) error {
		var behind discoveryv1.EndpointSliceList
		if err := cluster.Client.List(ctx, &behind, client.InNamespace(installation.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: "dynamo-operator-webhook-service"}); err != nil {
			return err
		}
		if slices.ContainsFunc(behind.Items, func(s discoveryv1.EndpointSlice) bool { return len(s.Endpoints) > 0 }) {
			return errors.New("somebody is behind the Service")
		}
		return nil
	})
	if err := cluster.Client.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	began, said := time.Now(), ""
	eventually(t, "the operator to take v1beta1 back", func(ctx context.Context) error {
		crd, err := definitionOf(ctx, definition.Converted[3])
		if err == nil && definition.Served(crd) {
			held := &corev1.Namespace{}
			if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(ns), held); err == nil {
				for _, c := range held.Status.Conditions {
					if c.Status == corev1.ConditionTrue && (c.Type == corev1.NamespaceDeletionContentFailure || c.Type == corev1.NamespaceDeletionDiscoveryFailure) {
						said = fmt.Sprintf("after %s the namespace says: %s", time.Since(began).Round(time.Second), c.Message)
					}
				}
			}
			err = errors.New("it is served")
		}
		return err
	})
	t.Log(said)
	eventually(t, "the namespace to go", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}
		return nil
	})
}

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyWithoutResponse is a client that applies at less cost to the API server: it does not have
// it read each payload a second time for misspelt or repeated fields, which what
// is made from Go types cannot have, and asks for the metadata of the outcome
// alone, of which the Applier needs the version.
func ApplyWithoutResponse(c client.Client) client.Client { return lean{c} }

type lean struct{ client.Client }

func (l lean) Apply(ctx context.Context, configuration runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	payload, ok := configuration.(interface {
		runtime.ApplyConfiguration
		UnstructuredContent() map[string]any
	})
	how := (&client.ApplyOptions{}).ApplyOptions(options)
	if !ok || len(how.DryRun) > 0 { // who only asks wants to know the outcome
		return l.Client.Apply(ctx, configuration, options...)
	}
	sent := &unstructured.Unstructured{Object: payload.UnstructuredContent()}
	data, err := json.Marshal(sent.Object)
	if err != nil {
		return fmt.Errorf("marshal %s %s: %w", sent.GetKind(), sent.GetName(), err)
	}
	outcome := &metav1.PartialObjectMetadata{}
	outcome.SetGroupVersionKind(sent.GroupVersionKind())
	outcome.SetNamespace(sent.GetNamespace())
	outcome.SetName(sent.GetName())
	err = l.Patch(ctx, outcome, client.RawPatch(types.ApplyPatchType, data), &client.PatchOptions{
		Force: how.Force, FieldManager: how.FieldManager, FieldValidation: metav1.FieldValidationIgnore,
	})
	if err != nil {
		return err
	}
	sent.SetUID(outcome.GetUID())
	sent.SetResourceVersion(outcome.GetResourceVersion())
	return nil
}

package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchStatus is how every status of ours is written, its conditions included: by one
// patch of what set changes about the object, so callers change nothing before. locked
// refuses to write over what was not seen. An object that is gone is no error.
func PatchStatus(ctx context.Context, c client.StatusClient, object client.Object, set func(), locked bool, options ...client.SubResourcePatchOption) error {
	before := object.DeepCopyObject().(client.Object)
	set()
	patch := client.MergeFrom(before)
	if locked {
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	options = append(options, client.FieldValidation(metav1.FieldValidationIgnore))
	if err := client.IgnoreNotFound(c.Status().Patch(ctx, object, patch, options...)); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}

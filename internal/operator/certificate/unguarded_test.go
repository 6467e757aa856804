//go:build unguarded

package certificate

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestWithoutTheGuardAnEmptyBundleIsPublished sees the attack succeed that
// TestACertificateWithoutAnAuthority of test/admission sees stopped.
func TestWithoutTheGuardAnEmptyBundleIsPublished(t *testing.T) {
	t.Setenv(guard.Variable, string(EmptyBundle))
	published := false
	k := &Keeper{Secret: types.NamespacedName{Name: "certs"}, Publish: func(_ context.Context, trusted []byte) error {
		published = len(trusted) == 0
		return nil
	}}
	if err := k.publish(t.Context(), nil); err != nil || !published {
		t.Errorf("published nothing: %v", err)
	}
}

package observe

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/deviceclaim"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// +kubebuilder:rbac:groups=resource.k8s.io,resources=resourceclaims,verbs=get

// DeviceRequests reads what templates and claims of a namespace ask for. Templates
// are watched. Claims are asked for: every pod that claims has some, and few graphs
// name one.
func (f Facts) DeviceRequests(ctx context.Context, namespace string, refs []graph.Ref) (deviceclaim.Requests, error) {
	found := deviceclaim.Requests{}
	for _, ref := range refs {
		key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
		template, claim := &resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceClaim{}
		var err error
		if ref.Kind == deviceclaim.KindTemplate {
			err = f.Cached.Get(ctx, key, template)
		} else {
			err = f.Direct.Get(ctx, key, claim)
		}
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("look for %s %s: %w", ref.Kind, key, err)
		}
		if err == nil {
			found[ref] = append(template.Spec.Spec.Devices.Requests, claim.Spec.Devices.Requests...)
		}
	}
	return found, nil
}

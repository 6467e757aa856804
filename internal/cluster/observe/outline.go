package observe

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Outlined reads objects of which an informer holds the metadata: that one exists
// is learned from the informer, what is in it from the API server.
type Outlined struct {
	client.Reader
	// Direct asks the API server.
	Direct client.Reader
}

// Get reads a whole object.
func (o Outlined) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	held := into.DeepCopyObject().(client.Object)
	if err := o.Reader.Get(ctx, key, held, options...); err != nil {
		return err
	}
	return o.Direct.Get(ctx, key, into, options...)
}

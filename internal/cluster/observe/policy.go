package observe

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Policies reads whether admission policies are in force, each with the binding
// of its own name. The reader should ask the API server: a policy that was
// unbound a moment ago judges nobody.
func Policies(ctx context.Context, reader client.Reader, names ...string) ([]snapshot.PolicyState, error) {
	var states []snapshot.PolicyState
	for _, name := range names {
		policy, err := named(ctx, reader, name, &admissionregistrationv1.ValidatingAdmissionPolicy{})
		if err != nil {
			return nil, err
		}
		binding, err := named(ctx, reader, name, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{})
		if err != nil {
			return nil, err
		}
		states = append(states, snapshot.JudgePolicy(name, policy, binding))
	}
	return states, nil
}

// named reads an object of the cluster; nil if there is none.
func named[T client.Object](ctx context.Context, reader client.Reader, name string, into T) (T, error) {
	var none T
	err := reader.Get(ctx, types.NamespacedName{Name: name}, into)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return none, fmt.Errorf("look for %T %s: %w", into, name, err)
	case err != nil:
		return none, nil
	default:
		return into, nil
	}
}

package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// Routes judges what users want to be reached by, before the operator makes it with
// rights that they may lack. The webhook judges the same but may have been away,
// and who wrote an object only the API server knows.
type Routes struct {
	Rules validation.IngressRules
	// Authorized reports whether the API server checks that authors of graphs and
	// components may make Ingresses and VirtualServices themselves; nil if it
	// does not.
	Authorized func(context.Context) (bool, error)
}

// OfGraph says why a graph is not reached as it asks to be; nil if it is.
func (r Routes) OfGraph(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) error {
	return r.judge(ctx, func(authorized bool) field.ErrorList { return validation.GraphIngress(dgd, r.Rules, authorized) })
}

// OfComponent is the same for a component.
func (r Routes) OfComponent(ctx context.Context, dcd *v1alpha1.DynamoComponentDeployment) error {
	return r.judge(ctx, func(authorized bool) field.ErrorList { return validation.ComponentIngress(dcd, r.Rules, authorized) })
}

// judge asks about policies only where the answer depends on them.
func (r Routes) judge(ctx context.Context, problems func(authorized bool) field.ErrorList) error {
	found := problems(false)
	if len(found) == 0 || r.Authorized == nil {
		return validation.IngressFault(found)
	}
	authorized, err := r.Authorized(ctx)
	if err != nil {
		return fmt.Errorf("look for the policies of Ingresses: %w", err)
	}
	return validation.IngressFault(problems(authorized))
}

package attack

import (
	"context"
	"fmt"

	conditions "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// conflict is nil once a graph says that somebody else has a name that it needs.
func (s *scene) conflict(ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
			return err
		}
		c := conditions.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
		if c == nil || c.Reason != v1alpha1.ReasonNameConflict {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	}
}

// Package apikind lists the kinds that the operator reconciles. All else of our API
// is written by others.
package apikind

import (
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Kind is one of them.
type Kind struct {
	Name     string
	Resource string
	// Condition is the one that tells whether an object is well.
	Condition string
	// New makes an empty object.
	New func() graph.Object
}

// Path is where a webhook is asked about the kind.
func (k Kind) Path() string { return "/validate-nvidia-com-v1alpha1-" + strings.ToLower(k.Name) }

// All of them, in the order in which their webhooks are registered.
var All = []Kind{
	{v1alpha1.KindDynamoComponentDeployment, "dynamocomponentdeployments", v1alpha1.ConditionAvailable, func() graph.Object { return &v1alpha1.DynamoComponentDeployment{} }},
	{v1alpha1.KindDynamoGraphDeployment, "dynamographdeployments", v1alpha1.ConditionReady, func() graph.Object { return &v1alpha1.DynamoGraphDeployment{} }},
	{v1alpha1.KindDynamoModel, "dynamomodels", v1alpha1.ConditionEndpointsReady, func() graph.Object { return &v1alpha1.DynamoModel{} }},
	{v1alpha1.KindDynamoGraphDeploymentRequest, "dynamographdeploymentrequests", v1alpha1.ConditionValidation, func() graph.Object { return &v1alpha1.DynamoGraphDeploymentRequest{} }},
	{v1alpha1.KindDynamoGraphDeploymentScalingAdapter, "dynamographdeploymentscalingadapters", v1alpha1.ConditionActive, func() graph.Object { return &v1alpha1.DynamoGraphDeploymentScalingAdapter{} }},
}

// Names are the names of all.
func Names() []string {
	var names []string
	for _, k := range All {
		names = append(names, k.Name)
	}
	return names
}

// Named is the kind of a name; the zero Kind if there is none.
func Named(name string) Kind {
	at := slices.IndexFunc(All, func(k Kind) bool { return k.Name == name })
	if at < 0 {
		return Kind{}
	}
	return All[at]
}

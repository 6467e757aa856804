// Package scheme knows every kind that the operator reads or writes, for
// programs that talk to a cluster and for those that only print what would be
// sent. It holds no client.
package scheme

import (
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/externalapi"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/lws"
)

// New makes a scheme of all of them.
func New() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, lwsv1.AddToScheme, grovev1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake in the program
		}
	}
	externalapi.AddToScheme[lws.PodGroupSpec](s, lws.PodGroupKind)
	externalapi.AddToScheme[render.VirtualServiceSpec](s, render.VirtualServiceKind)
	externalapi.AddToScheme[render.InferencePoolSpec](s, render.InferencePoolKind)
	return s
}

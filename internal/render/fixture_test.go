package render_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

func ownerOf(dgd *v1alpha1.DynamoGraphDeployment) metav1.OwnerReference {
	return *metav1.NewControllerRef(dgd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))
}

func marshal(t *testing.T, objects []graph.Object) string {
	t.Helper()
	var all strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

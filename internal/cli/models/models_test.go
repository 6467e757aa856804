package models

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func model(name string, kind v1alpha1.ModelType, status v1alpha1.DynamoModelStatus) v1alpha1.DynamoModel {
	return v1alpha1.DynamoModel{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.DynamoModelSpec{ModelName: "org/" + name, BaseModelName: "org/base", ModelType: kind},
		Status:     status,
	}
}

func TestWrite(t *testing.T) {
	all := []v1alpha1.DynamoModel{
		model("support", v1alpha1.ModelTypeLoRA, v1alpha1.DynamoModelStatus{ReadyEndpoints: 1, TotalEndpoints: 3, Endpoints: []v1alpha1.ModelEndpoint{
			{PodName: "decode-0", Ready: true}, {PodName: "decode-1"}, {PodName: "decode-2", Error: "load org/support: connection refused"},
		}}),
		model("nowhere", v1alpha1.ModelTypeLoRA, v1alpha1.DynamoModelStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionValid, Status: metav1.ConditionTrue},
			{Type: v1alpha1.ConditionEndpointsReady, Status: metav1.ConditionFalse, Message: "no ready pod serves org/base"},
		}}),
		model("base", "", v1alpha1.DynamoModelStatus{ReadyEndpoints: 1, TotalEndpoints: 1, Endpoints: []v1alpha1.ModelEndpoint{{PodName: "decode-0", Ready: true}}}),
		model("new", v1alpha1.ModelTypeLoRA, v1alpha1.DynamoModelStatus{}),
	}
	cases := map[string]struct {
		models     []v1alpha1.DynamoModel
		namespaces bool
		want       string
	}{
		"nothing is said plainly": {want: "No models found.\n"},
		"a line for each pod": {models: all, want: `
NAME      TYPE   MODEL         BASE       READY   POD        STATE
base      base   org/base      org/base   1/1     decode-0   served
new       lora   org/new       org/base   0/0     -          not looked at yet
nowhere   lora   org/nowhere   org/base   0/0     -          no ready pod serves org/base
support   lora   org/support   org/base   1/3     decode-0   loaded
                                                  decode-1   loading
                                                  decode-2   load org/support: connection refused
`},
		"with namespaces": {models: all[2:3], namespaces: true, want: `
NAMESPACE   NAME   TYPE   MODEL      BASE       READY   POD        STATE
shop        base   base   org/base   org/base   1/1     decode-0   served
`},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var out strings.Builder
			if err := Write(&out, c.models, c.namespaces); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

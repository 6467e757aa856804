package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestExtraPodSpecWritesOnlyWhatWasSet(t *testing.T) {
	cases := map[string]struct {
		spec v1alpha1.ExtraPodSpec
		want string
	}{
		"an empty spec is an empty object": {
			want: `{}`,
		},
		"a main container alone brings no containers, name or resources": {
			spec: v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{Image: "engine:1"}},
			want: `{"mainContainer":{"image":"engine:1"}}`,
		},
		"a name and resources that were set are kept": {
			spec: v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{
				Name:      "main",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
			}},
			want: `{"mainContainer":{"name":"main","resources":{"claims":[{"name":"gpu"}]}}}`,
		},
		"sidecars and pod fields stand beside the main container": {
			spec: v1alpha1.ExtraPodSpec{
				PodSpec: &corev1.PodSpec{
					HostNetwork: true,
					Containers:  []corev1.Container{{Name: "proxy"}},
				},
				MainContainer: &corev1.Container{Image: "engine:1"},
			},
			want: `{"hostNetwork":true,"containers":[{"name":"proxy","resources":{}}],"mainContainer":{"image":"engine:1"}}`,
		},
		"pod fields without sidecars bring no containers": {
			spec: v1alpha1.ExtraPodSpec{PodSpec: &corev1.PodSpec{HostNetwork: true}},
			want: `{"hostNetwork":true}`,
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			got, err := json.Marshal(c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, []byte(c.want)), decode(t, got)); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
			var back v1alpha1.ExtraPodSpec
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.spec, back); diff != "" {
				t.Errorf("decoded again (-want +got):\n%s", diff)
			}
		})
	}
}

package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestSortedServices(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []string
	}{
		"no services yield nothing":              {spec: `{}`},
		"names ascend by byte, upper case first": {spec: `{"services":{"b":{},"a":{},"C":{}}}`, want: []string{"C", "a", "b"}},
		"a null service is an empty one":         {spec: `{"services":{"a":null}}`, want: []string{"a"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var spec v1alpha1.DynamoGraphDeploymentSpec
			if err := json.Unmarshal([]byte(c.spec), &spec); err != nil {
				t.Fatal(err)
			}
			var got []string
			for name, service := range spec.SortedServices() {
				if diff := cmp.Diff(&v1alpha1.SharedSpec{}, service); diff != "" {
					t.Errorf("service %s (-want +got):\n%s", name, diff)
				}
				got = append(got, name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

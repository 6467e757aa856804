package validation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// What a user reads is the whole error, so here it is compared as a whole.
func TestWhatIsSaidOfABadModel(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []string
	}{
		"an unknown type":       {`{modelName: m, baseModelName: b, modelType: dora}`, []string{`spec.modelType: Unsupported value: "dora": supported values: "base", "lora", "adapter"`}},
		"a lora without source": {`{modelName: m, baseModelName: b, modelType: lora}`, []string{`spec.source: Required value: a lora is fetched from somewhere`}},
		"an unknown scheme":     {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: "ftp://x"}}`, []string{`spec.source.uri: Invalid value: "ftp://x": must begin with s3://, hf://, file://`}},
		"a scheme alone":        {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: "s3://"}}`, []string{`spec.source.uri: Invalid value: "s3://": must name a place, without spaces`}},
		"spaces in a place":     {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: "s3://a b"}}`, []string{`spec.source.uri: Invalid value: "s3://a b": must name a place, without spaces`}},
		"an empty base model":   {`{modelName: m, baseModelName: ""}`, []string{`spec.baseModelName: Required value`}},
		"a name that leads elsewhere": {
			`{modelName: ../../engine/sleep, baseModelName: b, modelType: lora, source: {uri: "s3://x"}}`,
			[]string{`spec.modelName: Invalid value: "../../engine/sleep": must not have empty parts, . or .. between slashes: engines take it as part of a path`},
		},
		"everything at once": {
			`{modelType: lora, source: {uri: "x"}}`,
			[]string{`spec.baseModelName: Required value`, `spec.modelName: Required value`, `spec.source.uri: Invalid value: "x": must begin with s3://, hf://, file://`},
		},
		"the name of a base model leads nowhere": {`{modelName: /models/m, baseModelName: /models/m}`, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, err := range Model(decode(t, c.spec, &v1alpha1.DynamoModel{})) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

package render

import (
	"strings"
	"testing"
)

// TestCommandLinesFollowClaims: what an engine of several nodes is told depends on the GPUs
// of each, which only the template of their claims says.
func TestCommandLinesFollowClaims(t *testing.T) {
	const (
		template = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: two}\nspec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}\n---\n"
		claiming = "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: g}\nspec: {components: [{name: w, type: worker, multinode: {nodeCount: 2}, podTemplate: {spec: {" +
			"resourceClaims: [{name: gpus, resourceClaimTemplateName: two}], containers: [{name: main, image: x:1.4.1, command: [python3, -m, dynamo.vllm], args: [--model, m, -tp, \"4\"], resources: {claims: [{name: gpus}]}}]}}}]}\n"
		elsewhere = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: two, namespace: other}\nspec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}\n---\n"
	)
	for rule, c := range map[string]struct {
		stdin, orchestrator string
		spans               bool
	}{
		"nodes meet that have too few each":             {template + claiming, "auto", true},
		"also on Grove":                                 {template + claiming, "grove", true},
		"a note tells of a template that is not there":  {claiming, "auto", false},
		"that of another namespace is not there either": {elsewhere + claiming, "auto", false},
	} {
		t.Run(rule, func(t *testing.T) {
			out, notes, err := execute(t, c.stdin, "-f", "-", "--orchestrator", c.orchestrator)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out, "--nnodes"); got != c.spans {
				t.Errorf("nodes meet: %t", got)
			}
			if got := strings.Contains(notes, "ResourceClaimTemplate two, which does not exist"); got == c.spans {
				t.Errorf("notes: %s", notes)
			}
		})
	}
}

package compat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
)

func TestLeaves(t *testing.T) {
	cases := map[string]struct {
		value string
		want  map[string]string
	}{
		"scalars keep their type": {
			value: `{"a": 1, "b": "1", "c": true, "d": null}`,
			want:  map[string]string{"a": "1", "b": `"1"`, "c": "true", "d": "null"},
		},
		"an empty map is a leaf": {
			value: `{"emptyDir": {}}`,
			want:  map[string]string{"emptyDir": "{}"},
		},
		"names with dots are bracketed": {
			value: `{"labels": {"nvidia.com/selector": "x"}}`,
			want:  map[string]string{"labels[nvidia.com/selector]": `"x"`},
		},
		"items are found by name, and their order is a leaf": {
			value: `{"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}`,
			want: map[string]string{
				"env[B].name": `"B"`, "env[B].value": `"2"`, "env[A].name": `"A"`, "env[A].value": `"1"`, "env.(order)": "B A",
			},
		},
		"mounts of one volume are told apart by path": {
			value: `{"mounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]}`,
			want: map[string]string{
				"mounts[/a].name": `"v"`, "mounts[/a].mountPath": `"/a"`, "mounts[/b].name": `"v"`, "mounts[/b].mountPath": `"/b"`,
				"mounts.(order)": "/a /b",
			},
		},
		"items without a key are found by place": {
			value: `{"args": ["x", "y"], "rules": [{"verbs": ["get"]}]}`,
			want:  map[string]string{"args[0]": `"x"`, "args[1]": `"y"`, "rules[0].verbs[0]": `"get"`},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var value any
			if err := json.Unmarshal([]byte(c.value), &value); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, leaves(value)); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
		})
	}
}

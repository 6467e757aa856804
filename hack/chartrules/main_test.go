package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyRolesAreTakenFromAStream(t *testing.T) {
	roles, err := decode([]byte(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: dynamo-operator-a}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
kind: ClusterRoleBinding
metadata: {name: dynamo-operator-b}
---
kind: Role
metadata: {name: dynamo-operator-c}
`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, role := range roles {
		names = append(names, role.Name)
	}
	if diff := cmp.Diff([]string{"dynamo-operator-a", "dynamo-operator-c"}, names); diff != "" {
		t.Error(diff)
	}
}

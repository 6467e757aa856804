package rights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRights(t *testing.T) {
	const log = `{"user":{"username":"op"},"verb":"list","objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200}}
{"user":{"username":"op"},"verb":"patch","objectRef":{"resource":"deployments","apiGroup":"apps","name":"d"},"responseStatus":{"code":201}}
{"user":{"username":"op"},"verb":"patch","objectRef":{"resource":"graphs","subresource":"status","apiGroup":"x.io"},"responseStatus":{"code":200}}
{"user":{"username":"op"},"verb":"get","requestURI":"/api/v1/nodes","objectRef":{"resource":"nodes"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"user":{"username":"op"},"verb":"create","objectRef":{"resource":"leases","apiGroup":"c"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"other"},"verb":"delete","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"user":{"username":"op"},"verb":"watch","requestURI":"/api/v1/services?sendInitialEvents=true&watch=true","objectRef":{"resource":"services"},"responseStatus":{"code":200}}
{"user":{"username":"op"},"verb":"get","requestURI":"/healthz"}
{"user":{"username":"op"},"verb":"del`
	usage, err := Read(strings.NewReader(log), "op")
	if err != nil {
		t.Fatal(err)
	}
	want := map[Right]bool{
		{"list", "pods"}: true, {"patch", "deployments.apps"}: true, {"create", "deployments.apps"}: true,
		{"watch", "services"}: true, {"list", "services"}: true,
		{"patch", "graphs/status.x.io"}: true, {"create", "leases.c"}: true,
	}
	if diff := cmp.Diff(want, usage.Used); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[Right]string{{"get", "nodes"}: "/api/v1/nodes"}, usage.Denied); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
	if missing := usage.Missing(); len(missing) != 1 {
		t.Errorf("missing %v", missing)
	}
	usage.Used[Right{"get", "nodes"}] = true
	if missing := usage.Missing(); len(missing) != 0 {
		t.Errorf("what is granted later is missing: %v", missing)
	}
	granted := Granted([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create", "patch", "delete"}},
	})
	if diff := cmp.Diff([]Right{{"delete", "deployments.apps"}, {"watch", "pods"}}, usage.Unused(granted)); diff != "" {
		t.Errorf("unused (-want +got):\n%s", diff)
	}
}

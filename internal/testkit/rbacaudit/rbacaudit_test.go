package rbacaudit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func named(rule rbacv1.PolicyRule, name string) rbacv1.PolicyRule {
	rule.ResourceNames = []string{name}
	return rule
}

// wide holds everywhere, own in the namespace home alone.
var holders = []Holder{{Account: "home:op", Roles: []Role{
	{Name: "wide", Rules: []rbacv1.PolicyRule{
		rule("", "pods", "list", "watch"), rule("apps", "deployments", "create", "patch", "delete"),
		rule("", "secrets", "get"), rule("c", "leases", "get", "list", "watch"), rule("", "services", "list", "watch"), rule("x.io", "graphs/status", "patch"),
	}},
	{Name: "own", Namespace: "home", Rules: []rbacv1.PolicyRule{
		named(rule("", "secrets", "get"), "cert"), rule("c", "leases", "get", "create"),
	}},
}}, {Account: "*:engine", Roles: []Role{{Name: "engine", Rules: []rbacv1.PolicyRule{rule("", "pods", "get")}}}}}

const user = `{"user":{"username":"system:serviceaccount:home:op"},`

const log = user + `"verb":"list","objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200}}
` + user + `"verb":"patch","objectRef":{"resource":"deployments","apiGroup":"apps","name":"d","namespace":"n"},"responseStatus":{"code":201}}
` + user + `"verb":"patch","objectRef":{"resource":"graphs","subresource":"status","apiGroup":"x.io"},"responseStatus":{"code":200}}
` + user + `"verb":"get","requestURI":"/api/v1/nodes","objectRef":{"resource":"nodes"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}
` + user + `"verb":"create","objectRef":{"resource":"leases","apiGroup":"c","namespace":"home"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"allow"}}
` + user + `"verb":"get","objectRef":{"resource":"leases","apiGroup":"c","namespace":"home","name":"l"},"responseStatus":{"code":200}}
` + user + `"verb":"get","objectRef":{"resource":"secrets","namespace":"home","name":"cert"},"responseStatus":{"code":200}}
` + user + `"verb":"watch","requestURI":"/api/v1/services?sendInitialEvents=true&watch=true","objectRef":{"resource":"services"},"responseStatus":{"code":200}}
{"user":{"username":"system:serviceaccount:n:other"},"verb":"delete","objectRef":{"resource":"deployments","apiGroup":"apps"},"responseStatus":{"code":200}}
{"user":{"username":"system:serviceaccount:n:engine"},"verb":"get","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
` + user + `"verb":"get","requestURI":"/healthz"}
` + user + `"verb":"del`

func TestARequestUsesTheNarrowestRightThatAllowsIt(t *testing.T) {
	usage := NewUsage()
	if err := usage.Read(strings.NewReader(log), holders); err != nil {
		t.Fatal(err)
	}
	want := map[Right]bool{
		{"wide", "list", "pods"}: true, {"wide", "patch", "deployments.apps"}: true, {"wide", "create", "deployments.apps"}: true,
		{"wide", "patch", "graphs/status.x.io"}: true, {"wide", "watch", "services"}: true, {"wide", "list", "services"}: true,
		{"own", "create", "leases.c"}: true, {"own", "get", "leases.c"}: true, {"own", "get", "secrets"}: true,
		{"engine", "get", "pods"}: true,
	}
	if diff := cmp.Diff(want, usage.Used); diff != "" {
		t.Errorf("used (-want +got):\n%s", diff)
	}
}

func TestProve(t *testing.T) {
	usage := NewUsage()
	if err := usage.Read(strings.NewReader(log), holders); err != nil {
		t.Fatal(err)
	}
	got := Prove(holders, usage, []Reason{
		{Role: "wide", Verbs: []string{"delete"}, Resource: "deployments.apps", Why: "rare"},
		{Role: "wide", Resource: "leases.c", Why: "all verbs"},
		{Role: "engine", Resource: "pods", Why: "it is used"},
	}).Problems()
	want := []string{
		"a reason for what is used, or not granted: engine:  pods",
		"denied: get nodes (system:serviceaccount:home:op /api/v1/nodes)",
		"granted and not used: wide: get secrets",
		"granted and not used: wide: watch pods",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	again := user + `"verb":"get","objectRef":{"resource":"nodes"},"responseStatus":{"code":200}}` + "\n"
	if err := usage.Read(strings.NewReader(again), holders); err != nil {
		t.Fatal(err)
	}
	if missing := usage.Missing(); len(missing) != 0 {
		t.Errorf("what is granted later is missing: %v", missing)
	}
}

// TestKeep is about the file that runs leave for the proof.
func TestKeep(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "audit.log")
	person := `{"user":{"username":"admin"},"verb":"get","objectRef":{"resource":"pods"}}` + "\n"
	if err := os.WriteFile(path, []byte(person+log), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Keep(filepath.Join(folder, "kept"), "one", []string{path}); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(folder, "kept", "one.log"))
	if err != nil {
		t.Fatal(err)
	}
	if want := log[:strings.LastIndex(log, "\n")+1]; string(kept) != want {
		t.Errorf("kept (-want +got):\n%s", cmp.Diff(want, string(kept)))
	}
}

// TestEveryReasonIsAboutARightThatIsGiven, whether or not it is used.
func TestEveryReasonIsAboutARightThatIsGiven(t *testing.T) {
	shipped, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	var all []Right
	for _, h := range shipped {
		for _, role := range h.Roles {
			all = append(all, role.Rights()...)
		}
	}
	for _, r := range Held {
		if r.Why == "" || !slices.ContainsFunc(all, r.covers) {
			t.Errorf("%s is not given, or has no reason", r)
		}
	}
}

// TestAWatchThatListsGrantsTheList: a client that is cut off lists instead, and is refused
// while its namespace goes.
func TestAWatchThatListsGrantsTheList(t *testing.T) {
	usage := NewUsage()
	refused := user + `"verb":"list","requestURI":"/api/v1/nodes","objectRef":{"resource":"nodes"},"annotations":{"authorization.k8s.io/decision":"forbid"}}` + "\n"
	if err := usage.Read(strings.NewReader(refused), holders); err != nil || len(usage.Missing()) != 1 {
		t.Fatalf("missing %v, %v", usage.Missing(), err)
	}
	watched := user + `"verb":"watch","requestURI":"/api/v1/nodes?sendInitialEvents=true","objectRef":{"resource":"nodes"},"responseStatus":{"code":200}}` + "\n"
	if err := usage.Read(strings.NewReader(watched), holders); err != nil || len(usage.Missing()) != 0 {
		t.Errorf("missing %v, %v", usage.Missing(), err)
	}
}

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/internal/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/rights"
)

// checkUse has rights that were not used fail the run, too: make rights. Only a
// run of all tests uses all of them.
var checkUse = flag.Bool("rights", false, "fail if the operator has a right that no test made it use")

// heldOnly are rights that no request shows, and why they are held.
var heldOnly = map[string]string{
	// Kubernetes lets nobody grant a right that they lack. These are granted to
	// the pods of graphs.
	"endpoints":                        "granted to pods",
	"endpointslices.discovery.k8s.io":  "granted to pods",
	"dynamoworkermetadatas.nvidia.com": "granted to pods",
	// Checked by the API server when a binding names the role.
	"bind clusterroles.rbac.authorization.k8s.io": "asked by the API server",
	// Checked where owners may be blocked from deletion only by those who may
	// set their finalizers, which is not the default.
	"/finalizers.nvidia.com": "asked by the API server on some clusters",
	// The installation of the tests has one replica and no election.
	"leases.coordination.k8s.io":                                          "elections and claims of several operators: see test/webhook",
	"namespacescopes.nvidia.com":                                          "asked by an admission policy: see test/webhook",
	"delete validatingwebhookconfigurations.admissionregistration.k8s.io": "when the last replica ends",
	// Optional APIs that only some clusters have.
	"queues.scheduling.run.ai": "only with the KAI scheduler",
	// Off unless configured.
	"networkpolicies.networking.k8s.io": "only with networkPolicy.enabled",
	// Metrics that are served securely.
	"tokenreviews.authentication.k8s.io":        "only with server.secureMetrics",
	"subjectaccessreviews.authorization.k8s.io": "only with server.secureMetrics",
}

// checkRights holds what the operator is granted against what it did in all
// clusters of this run.
func checkRights() error {
	used := rights.Usage{Used: map[rights.Right]bool{}, Denied: map[rights.Right]string{}}
	logs, err := filepath.Glob(filepath.Join(dir, "*", "logs", "audit.log"))
	if err != nil {
		return err
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		usage, err := rights.Read(bytes.NewReader(text), operatorUser)
		if err != nil {
			return err
		}
		for right := range usage.Used {
			used.Used[right] = true
		}
		maps.Copy(used.Denied, usage.Denied)
	}
	var problems []string
	for right, example := range used.Missing() {
		problems = append(problems, fmt.Sprintf("denied: %s (%s)", right, example))
	}
	granted, err := granted()
	if err != nil {
		return err
	}
	unused := slices.DeleteFunc(used.Unused(granted), func(r rights.Right) bool {
		for what := range heldOnly {
			if strings.HasSuffix(r.String(), what) {
				return true
			}
		}
		return false
	})
	fmt.Printf("rights: %d granted, %d of them used, %d held for others, %d unused, %d missing\n",
		len(granted), len(granted)-len(used.Unused(granted)), len(used.Unused(granted))-len(unused), len(unused), len(used.Missing()))
	for _, right := range unused {
		fmt.Println("  not used:", right)
		if *checkUse {
			problems = append(problems, "granted and not used: "+right.String())
		}
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		return fmt.Errorf("rights of the operator:\n%s", strings.Join(problems, "\n"))
	}
	return nil
}

// granted are the rights of the roles that the operator is bound to.
func granted() ([]rights.Right, error) {
	objects, err := installation.Operator()
	if err != nil {
		return nil, err
	}
	var rules []rbacv1.PolicyRule
	for _, object := range objects {
		switch name := object.GetName(); {
		case object.GetKind() != "ClusterRole" && object.GetKind() != "Role":
			continue
		case !strings.HasPrefix(name, "dynamo-operator-manager") && name != "dynamo-operator-webhook" && name != "dynamo-operator-leader-election":
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return nil, err
		}
		rules = append(rules, role.Rules...)
	}
	return rights.Granted(rules), nil
}

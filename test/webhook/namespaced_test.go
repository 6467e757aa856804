package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/operator"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/rbacaudit"
)

// TestAnOperatorForOneNamespace runs one beside that for the cluster, under an
// account whose rights end at the namespace.
func TestAnOperatorForOneNamespace(t *testing.T) {
	t.Parallel()
	ns, other := namespace(t, nil), namespace(t, nil)
	// The audit log holds reads of accounts in the operator's namespace.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: localenv.OperatorKey.Namespace, Name: rbacaudit.Team}}
	if err := cluster.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	for _, role := range []string{"dynamo-operator-manager", "dynamo-operator-namespace-scope"} {
		bind(t, ns, role, subject)
	}
	user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	granted(t, user, ns, "nvidia.com", "dynamographdeployments", "list")
	granted(t, user, ns, "nvidia.com", "namespacescopes", "hold")
	cfg := config.Default()
	cfg.Namespaces = []string{ns}
	cfg.Server.MetricsAddress, cfg.Server.HealthAddress = "", ""
	cfg.Tenancy.Renew.Duration = time.Second
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx, cfg, tokenOf(t, account)) }()
	defer stop()

	for _, where := range []string{ns, other} {
		if err := cluster.Client.Create(t.Context(), graphOf(where, "g", idle)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the graph to be looked after by the operator of its namespace", func(ctx context.Context) error {
		select {
		case err := <-ended:
			t.Fatalf("the operator has ended: %v", err)
		default:
		}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "g-a"}, &appsv1.Deployment{}); err != nil {
			return err
		}
		return says(ctx, ns, "g", v1alpha1.ReasonNamespaceOperator)
	})
	eventually(t, "the other graph to be the cluster's", func(ctx context.Context) error {
		return errors.Join(says(ctx, other, "g", ""), cluster.Client.Get(ctx, types.NamespacedName{Namespace: other, Name: "g-a"}, &appsv1.Deployment{}))
	})
	var first *metav1.MicroTime
	eventually(t, "the claim to be renewed", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: namespacescope.LeaseName}, lease); err != nil {
			return err
		}
		if first == nil {
			first = lease.Spec.RenewTime
		}
		if lease.Spec.RenewTime.Equal(first) {
			return errors.New("it was not yet")
		}
		return nil
	})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster's operator to take over", func(ctx context.Context) error { return says(ctx, ns, "g", "") })
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "g"}, dgd); err != nil {
		t.Fatal(err)
	}
	before := dgd.DeepCopy()
	dgd.Spec.Services["a"].Replicas = new(int32(2))
	if err := cluster.Client.Patch(t.Context(), dgd, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a change to be followed", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "g-a"}, d); err != nil {
			return err
		}
		if *d.Spec.Replicas != 2 {
			return fmt.Errorf("%d replicas", *d.Spec.Replicas)
		}
		return nil
	})
	touchedNothingElse(t, user, ns)
}

// granted waits until the API server knows of a right: it learns of bindings with
// a delay, and what it refuses before that would count as refused.
func granted(t *testing.T, user, ns, group, resource, verb string) {
	t.Helper()
	allowed(t, authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Group: group, Resource: resource, Verb: verb},
	})
}

func allowed(t *testing.T, what authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	eventually(t, what.User+" to be allowed what it was granted", func(ctx context.Context) error {
		review := &authorizationv1.SubjectAccessReview{Spec: what}
		if err := cluster.Client.Create(ctx, review); err != nil {
			return err
		}
		if !review.Status.Allowed {
			return errors.New(review.Status.Reason)
		}
		return nil
	})
}

// tokenOf is a configuration with nothing but the account's token.
func tokenOf(t *testing.T, account *corev1.ServiceAccount) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if err := cluster.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	anonymous := rest.AnonymousClientConfig(cluster.Config)
	anonymous.BearerToken = request.Status.Token
	return anonymous
}

// touchedNothingElse reads the audit log: every request of a user for an object
// was in one namespace, and none was refused.
func touchedNothingElse(t *testing.T, user, ns string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "cluster", "logs", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	for line := range strings.Lines(string(text)) {
		var e struct {
			User        struct{ Username string }
			Verb        string
			RequestURI  string `json:"requestURI"`
			ObjectRef   *struct{ Namespace, Resource string }
			Annotations map[string]string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.User.Username != user || e.ObjectRef == nil {
			continue
		}
		requests++
		if e.ObjectRef.Namespace != ns && e.ObjectRef.Resource != "selfsubjectreviews" || e.Annotations["authorization.k8s.io/decision"] == "forbid" {
			t.Errorf("%s %s: %s", e.Verb, e.RequestURI, e.Annotations["authorization.k8s.io/decision"])
		}
	}
	if requests == 0 {
		t.Error("the audit log has no request of the operator")
	}
}

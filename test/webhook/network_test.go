package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAClosedNetwork is about what is rendered: nobody enforces policies here.
func TestAClosedNetwork(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	dgd := graphOf(ns, "g", `{services: {front: {componentType: frontend, `+image+`}, a: {`+image+`}}}`)
	if err := cluster.Client.Create(t.Context(), dgd); err != nil {
		t.Fatal(err)
	}
	policy := func(name string) func(context.Context) (*networkingv1.NetworkPolicy, error) {
		return func(ctx context.Context) (*networkingv1.NetworkPolicy, error) {
			p := &networkingv1.NetworkPolicy{}
			return p, cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: name}, p)
		}
	}
	inside, door := policy("g-inside"), policy("g-doors")
	var first types.UID
	eventually(t, "a closed graph with a door", func(ctx context.Context) error {
		p, err := inside(ctx)
		if err != nil {
			return err
		}
		first = p.UID
		_, err = door(ctx)
		return err
	})
	if err := cluster.Client.Delete(t.Context(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "g-inside"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a policy that somebody deleted", func(ctx context.Context) error {
		p, err := inside(ctx)
		if err == nil && p.UID == first {
			err = errors.New("it is the one that was deleted")
		}
		return err
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"services":{"front":null}}}`))
	if err := cluster.Client.Patch(t.Context(), dgd, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no door where nothing serves", func(ctx context.Context) error {
		if _, err := door(ctx); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}
		_, err := inside(ctx)
		return err
	})
}

// TestMetricsAreForThoseWhoMayReadThem asks a replica as nobody, as somebody, and
// as an account that has the role which is shipped for it.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	// A refusal is remembered for half a minute, so they are not the same.
	var tokens []string
	for _, name := range []string{"stranger", "scraper"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		if err := cluster.Client.Create(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, tokenOf(t, account).BearerToken)
	}
	expect := func(who, token string, want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s to be answered with %d", who, want), func(ctx context.Context) error {
			status, text, err := scrape(ctx, token)
			switch {
			case err != nil:
				return err
			case status != want:
				return fmt.Errorf("it is %d: %s", status, text)
			case want == http.StatusOK && !strings.Contains(text, "go_goroutines"):
				return errors.New("there are no metrics in it")
			}
			return nil
		})
	}
	expect("nobody", "", http.StatusUnauthorized)
	expect("an account without the role", tokens[0], http.StatusForbidden)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "scraper-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "scraper"}},
	}
	if err := cluster.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cluster.Client.Delete(context.Background(), binding) })
	allowed(t, authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + ns + ":scraper", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	})
	expect("a reader of metrics", tokens[1], http.StatusOK)
}

// scrape asks the first replica that runs.
func scrape(ctx context.Context, token string) (status int, text string, err error) {
	replicas, err := pods(ctx)
	if err != nil {
		return 0, "", err
	}
	at := slices.IndexFunc(replicas, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
	})
	if at < 0 {
		return 0, "", errors.New("no replica runs")
	}
	transport := cluster.HTTP.Transport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the operator signs for itself; who asks is what counts
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+replicas[at].Status.PodIP+":8080/metrics", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// TestAGraphReachesNothingOfAnotherNamespace: there is no field that names one.
// What it refers to is looked for beside it, whoever has the same name
// elsewhere, and a name that tries to lead there is refused.
func TestAGraphReachesNothingOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	victim, ns := namespace(t, nil), namespace(t, nil)
	for _, object := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "token"}, StringData: map[string]string{"KEY": "of-the-victim"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim, Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"victim.example":{"auth":"eDp5"}}}`}},
		graphOf(victim, "g", idle),
	} {
		if err := cluster.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for rule, spec := range map[string]string{
		"a claim":       `{pvcs: [{name: ` + victim + `/cache}], services: {a: {}}}`,
		"a secret":      `{services: {a: {envFromSecret: ` + victim + `/token}}}`,
		"a certificate": `{services: {a: {ingress: {enabled: true, host: h, tls: {secretName: ` + victim + `/token}}}}}`,
	} {
		if err := dryRun(t.Context(), graphOf(ns, "bad", spec)); err == nil || !strings.Contains(err.Error(), "spec.") {
			t.Errorf("%s of another namespace: %v", rule, err)
		}
	}
	adapter := graphOf(ns, "reach", `{replicas: 5, dgdRef: {name: `+victim+`/g, serviceName: a}}`)
	adapter.SetKind("DynamoGraphDeploymentScalingAdapter")
	if err := dryRun(t.Context(), adapter); err == nil {
		t.Error("an adapter of another namespace's graph is admitted")
	}
	// The same names, written without a namespace: none of the victim's is found.
	spec := `{services: {a: {envFromSecret: token, extraPodSpec: {mainContainer: {image: "victim.example/engine:1", args: ["sleep infinity"]}}}}}`
	if err := cluster.Client.Create(t.Context(), graphOf(ns, "g", spec)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods that lack what only the victim has", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: "g-a"}, d); err != nil {
			return err
		}
		if found := d.Spec.Template.Spec.ImagePullSecrets; len(found) > 0 {
			t.Errorf("pull secrets %v", found)
		}
		var list corev1.PodList
		if err := cluster.Client.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, pod := range list.Items {
			for _, s := range pod.Status.ContainerStatuses {
				if s.State.Running != nil {
					t.Errorf("pod %s runs", pod.Name)
				}
				if s.State.Waiting != nil && s.State.Waiting.Reason == "CreateContainerConfigError" {
					return nil
				}
			}
		}
		return errors.New("no pod waits for its Secret")
	})
}

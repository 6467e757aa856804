package chart

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// bundle is the base64 of what looks like a certificate in PEM.
const bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClEwRT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="

// sets are installations that differ in what they bring.
var sets = map[string]string{
	"as it comes":                      "{}",
	"one replica":                      "dynamo-operator: {controllerManager: {replicas: 1}}",
	"no webhook":                       "dynamo-operator: {webhook: {enabled: false}}",
	"one namespace":                    "dynamo-operator: {namespaceRestriction: {enabled: true, targetNamespace: team-a}, webhook: {enabled: false}}",
	"one namespace, own certificate":   "dynamo-operator: {namespaceRestriction: {enabled: true, targetNamespace: team-a}, webhook: {certificateSecret: {external: true}, caBundle: " + bundle + "}}",
	"one namespace, with metrics":      "dynamo-operator: {namespaceRestriction: {enabled: true, targetNamespace: team-a}, webhook: {enabled: false}, metricsService: {bindAuthDelegator: true, serviceMonitor: true}}",
	"one namespace, cert-manager":      "dynamo-operator: {namespaceRestriction: {enabled: true}, webhook: {certManager: {enabled: true}}}",
	"certificates by cert-manager":     "dynamo-operator: {webhook: {certManager: {enabled: true}}}",
	"certificates from outside":        "dynamo-operator: {webhook: {certificateSecret: {name: mine, external: true}}}",
	"authority from outside":           "dynamo-operator: {webhook: {certificateSecret: {name: mine, external: true}, caBundle: " + bundle + "}, metricsService: {serviceMonitor: true}}",
	"metrics without webhooks":         "dynamo-operator: {webhook: {enabled: false, certManager: {enabled: true}}}",
	"NATS and etcd of others":          "dynamo-operator: {discoveryBackend: etcd, etcdAddr: 'etcd:2379', natsAddr: 'nats://nats:4222'}",
	"all monitoring":                   "{monitoring: {podMonitors: true, prometheusRule: true, dashboards: {enabled: true}}, dynamo-operator: {metricsService: {serviceMonitor: true}}}",
	"Istio and Prometheus":             "dynamo-operator: {dynamo: {istio: {enabled: true, gateway: istio-system/gw}, ingressHostSuffix: example.com, metrics: {prometheusEndpoint: 'http://p:9090'}}}",
	"Ingress, registry and placement":  "dynamo-operator: {dynamo: {ingress: {enabled: true, className: nginx}, dockerRegistry: {useKubernetesSecret: true, server: docker.io, username: u, password: p}}, controllerManager: {tolerations: [{operator: Exists}], nodeSelector: {a: b}, priorityClassName: system-cluster-critical}, imagePullSecrets: [{name: s}]}",
	"queues of KAI":                    "kai-scheduler: {queues: true}",
	"definitions by others":            "dynamo-operator: {crds: {owner: none}}",
	"configuration laid over the rest": "dynamo-operator: {controllerManager: {manager: {config: {controller: {workers: 2}, log: {format: text}}}}}",
}

// TestEverySetIsWhatAnAPIServerTakes sends each rendered object to the server as
// a dry run, and reads the configuration as the operator does.
func TestEverySetIsWhatAnAPIServerTakes(t *testing.T) {
	ctx := t.Context()
	for _, namespace := range []string{"dynamo-system", "team-a"} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := client.IgnoreAlreadyExists(cluster.Client.Create(ctx, object)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Apply(ctx, optionalAPIs()); err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, values := range sets {
		text, err := template(ctx, values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		objects, err := installation.Decode(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, object := range objects {
			total++
			if object.GetKind() == "ConfigMap" && strings.HasSuffix(object.GetName(), "-config") {
				loads(t, name, object)
			}
			if err := dryRun(ctx, object); err != nil {
				t.Errorf("%s: %s %s: %v", name, object.GetKind(), object.GetName(), err)
			}
		}
	}
	summary.Line(t, "charts: %d objects of %d value sets taken by the API server in a dry run", total, len(sets))
}

// TestEveryOverlayIsWhatAnAPIServerTakes does the same for Kustomize.
func TestEveryOverlayIsWhatAnAPIServerTakes(t *testing.T) {
	ctx := t.Context()
	for _, name := range []string{"dynamo-system", "dynamo-graphs"} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreAlreadyExists(cluster.Client.Create(ctx, object)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Apply(ctx, optionalAPIs()); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"default", "namespaced", "cert-manager"} {
		text, err := cluster.Kubectl(ctx, nil, "kustomize", "../../config/"+overlay)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := installation.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if object.GetKind() == "ConfigMap" {
				loads(t, overlay, object)
			}
			if err := dryRun(ctx, object); err != nil {
				t.Errorf("%s: %s %s: %v", overlay, object.GetKind(), object.GetName(), err)
			}
		}
	}
}

// TestADefinitionIsTakenOverTheOneThatWasReadAlone is what the installation rests on
// where somebody withdraws a version meanwhile.
func TestADefinitionIsTakenOverTheOneThatWasReadAlone(t *testing.T) {
	ctx := t.Context()
	definitions := optionalAPIs()[:1]
	if err := cluster.Apply(ctx, definitions); err != nil {
		t.Fatal(err)
	}
	stale := definitions[0].DeepCopy()
	stale.SetResourceVersion("1")
	err := cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(stale), client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll)
	if !apierrors.IsConflict(err) {
		t.Errorf("a definition that was read earlier came to %v", err)
	}
}

// dryRun asks the server to take an object, as the guide has it applied. A kind that was defined just now may
// need a moment.
func dryRun(ctx context.Context, object *unstructured.Unstructured) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// optionalAPIs are definitions of other projects' kinds, as wide as can be: that the
// objects are what those projects want is for their own schemas to say.
func optionalAPIs() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, g := range []struct{ group, version, kind, plural, scope string }{
		{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", "Namespaced"},
		{"monitoring.coreos.com", "v1", "PodMonitor", "podmonitors", "Namespaced"},
		{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules", "Namespaced"},
		{"cert-manager.io", "v1", "Issuer", "issuers", "Namespaced"},
		{"cert-manager.io", "v1", "Certificate", "certificates", "Namespaced"},
		{"scheduling.run.ai", "v2", "Queue", "queues", "Cluster"},
	} {
		all = append(all, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": g.plural + "." + g.group},
			"spec": map[string]any{
				"group": g.group, "scope": g.scope,
				"names": map[string]any{"kind": g.kind, "plural": g.plural, "singular": strings.ToLower(g.kind), "listKind": g.kind + "List"},
				"versions": []any{map[string]any{
					"name": g.version, "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}})
	}
	return all
}

// loads reads the configuration that a set renders.
func loads(t *testing.T, set string, object *unstructured.Unstructured) {
	t.Helper()
	text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("POD_NAMESPACE", "dynamo-system")
	cfg, err := config.Load(path)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		t.Errorf("%s: the operator would refuse its configuration: %v\n%s", set, err, text)
	}
}

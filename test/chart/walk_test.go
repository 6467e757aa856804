package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/installation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// contexts are what else has to be set for a value to mean something: the longest prefix
// of a value's path counts. A value without one has its effect on the defaults.
var contexts = map[string]string{
	"dynamo-operator.namespaceRestriction.targetNamespace": restricted,
	"dynamo-operator.namespaceRestriction.assumePolicies":  restricted,
	"dynamo-operator.controllerManager.leaderElection.id":  restricted,
	"dynamo-operator.metricsService.bindAuthDelegator":     restricted,
	"dynamo-operator.metricsService.tokenSecret":           restricted,
	"dynamo-operator.metricsService.monitorLabels":         "dynamo-operator: {metricsService: {serviceMonitor: true}}",
	"dynamo-operator.dynamo.dockerRegistry":                "dynamo-operator: {dynamo: {dockerRegistry: {useKubernetesSecret: true, server: r, username: u, password: p}}}",
	"dynamo-operator.dynamo.ingress.className":             "dynamo-operator: {dynamo: {ingress: {enabled: true}}}",
	"dynamo-operator.dynamo.ingress.tlsSecretName":         "dynamo-operator: {dynamo: {ingress: {enabled: true}}}",
	"dynamo-operator.dynamo.ingress.enabled":               "dynamo-operator: {dynamo: {ingress: {className: nginx}}}",
	"dynamo-operator.dynamo.istio.gateway":                 "dynamo-operator: {dynamo: {istio: {enabled: true}}}",
	"dynamo-operator.dynamo.istio.enabled":                 "dynamo-operator: {dynamo: {istio: {gateway: istio-system/gw}}}",
	"dynamo-operator.webhook.caBundle":                     "dynamo-operator: {webhook: {certificateSecret: {external: true}}}",
	"dynamo-operator.webhook.certManager.certificate":      "dynamo-operator: {webhook: {certManager: {enabled: true}}}",
	"dynamo-operator.discoveryBackend":                     "dynamo-operator: {etcdAddr: 'etcd:2379'}",
	"dynamo-operator.namespaceRestriction.enabled":         "dynamo-operator: {webhook: {enabled: false}}",
	"dynamo-operator.converter.resources":                  converting,
	"dynamo-operator.converter.replicas":                   converting,
	"dynamo-operator.converter.renewSchedule":              converting,
	"dynamo-operator.converter.certificateSecret":          converting,
	"monitoring.operatorJob":                               "monitoring: {prometheusRule: true}",
	"monitoring.dashboards.namespace":                      "monitoring: {dashboards: {enabled: true}}",
	"monitoring.dashboards.labels":                         "monitoring: {dashboards: {enabled: true}}",
}

const restricted = "dynamo-operator: {namespaceRestriction: {enabled: true}, webhook: {enabled: false}, metricsService: {serviceMonitor: true}}"

const converting = "dynamo-operator: {namespaceRestriction: {enabled: true}, webhook: {enabled: false}, converter: {enabled: true}}"

// samples are values where one that is made up from the type says nothing.
var samples = map[string]any{
	"dynamo-operator.controllerManager.manager.args":             []any{"--log-level=debug"},
	"dynamo-operator.controllerManager.manager.config":           map[string]any{"controller": map[string]any{"workers": 3}},
	"dynamo-operator.metricsService.ports":                       []any{map[string]any{"name": "figures", "port": 9, "targetPort": "metrics"}},
	"dynamo-operator.metricsService.serviceMonitor":              true,
	"dynamo-operator.metricsService.tokenSecret.name":            "mine",
	"dynamo-operator.webhook.caBundle":                           bundle,
	"dynamo-operator.webhook.failurePolicy":                      "Fail",
	"dynamo-operator.crds.owner":                                 "none",
	"dynamo-operator.discoveryBackend":                           "etcd",
	"dynamo-operator.runtime.contract":                           "1.x",
	"dynamo-operator.runtime.unknownTags":                        "1.x",
	"dynamo-operator.controllerManager.manager.image.pullPolicy": "Always",
	"dynamo-operator.networkPolicy.metricsFrom":                  []any{map[string]any{"podSelector": map[string]any{}}},
	"dynamo-operator.dynamo.dockerRegistry.useKubernetesSecret":  false,
	"monitoring.podMonitors":                                     true,
	"monitoring.prometheusRule":                                  true,
	"kai-scheduler.queues":                                       true,
}

// helmsOwn are keys that Helm itself gives to every chart, with what a parent's values say
// to all of its charts.
var helmsOwn = []string{"global"}

// TestEveryValueHasAnEffectOrIsRefused changes each value of the chart that its defaults or
// its schema know, one at a time: what is rendered differs, or the change is refused.
func TestEveryValueHasAnEffectOrIsRefused(t *testing.T) {
	leaves := values(t)
	var mu sync.Mutex
	effects := map[string]string{}
	bases := map[string]map[string]string{}
	for _, context := range append(slices.Collect(maps.Values(contexts)), "{}") {
		if bases[context] == nil {
			bases[context] = render(t, map[string]any{}, context)
		}
	}
	t.Run("each", func(t *testing.T) {
		for _, path := range slices.Sorted(maps.Keys(leaves)) {
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				context := contextOf(path)
				changed := map[string]any{}
				set(changed, strings.Split(path, "."), other(path, leaves[path]))
				effect := differs(t, path, bases[context], changed, context)
				mu.Lock()
				defer mu.Unlock()
				effects[path] = effect
			})
		}
	})
	refused, table := 0, strings.Builder{}
	for _, path := range slices.Sorted(maps.Keys(effects)) {
		if strings.HasPrefix(effects[path], "refused") {
			refused++
		}
		fmt.Fprintf(&table, "%-70s %s\n", path, effects[path])
	}
	t.Logf("%d values\n%s", len(effects), &table)
	summary.Line(t, "chart values: %d, of which %d change what is rendered and %d are refused with a reason", len(effects), len(effects)-refused, refused)
}

// differs is what a change does.
func differs(t *testing.T, path string, before map[string]string, changed map[string]any, context string) string {
	t.Helper()
	text, err := renderText(t.Context(), changed, context)
	if err != nil {
		// Both a schema and a template say which value they refuse.
		if last := path[strings.LastIndex(path, ".")+1:]; !strings.Contains(err.Error(), last) {
			t.Errorf("refused without being named: %v", err)
		}
		return "refused: " + reason(err.Error())
	}
	after := byName(t, text)
	var objects []string
	for name := range after {
		if after[name] != before[name] {
			objects = append(objects, name)
		}
	}
	for name := range before {
		if _, found := after[name]; !found {
			objects = append(objects, name+" (gone)")
		}
	}
	slices.Sort(objects)
	if len(objects) == 0 {
		t.Errorf("is accepted and changes nothing: %v", changed)
	}
	if len(objects) > 3 {
		objects = append(objects[:3], fmt.Sprintf("and %d more", len(objects)-3))
	}
	return "changes " + strings.Join(objects, ", ")
}

var refusal = regexp.MustCompile(`(?m)^\s*- (.*)$`)

func reason(text string) string {
	if found := refusal.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return strings.Join(strings.Fields(text), " ")
}

// values are all that there are: the leaves of the defaults, and what the schema knows
// beside them.
func values(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	text, err := os.ReadFile(platform + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var defaults map[string]any
	if err := yaml.Unmarshal(text, &defaults); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(platform + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	walk(nil, schema, defaults, all)
	for _, key := range helmsOwn {
		delete(all, key)
	}
	// Keys that neither knows are refused as well.
	for _, unknown := range []string{
		"nonsense", "dynamo-operator.nonsense", "nats.nonsense", "etcd.nonsense", "grove.nonsense", "kai-scheduler.nonsense",
		"dynamo-operator.webhook.certManager.nonsense", "dynamo-operator.dynamo.components.nonsense", "dynamo-operator.controllerManager.serviceAccount.nonsense",
	} {
		all[unknown] = nil
	}
	return all
}

// walk collects leaves: what the schema has no properties for. A default that the schema
// does not know is a leaf, too, and cannot be rendered.
func walk(path []string, schema, defaults map[string]any, all map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for key := range defaults {
		if _, known := properties[key]; !known {
			all[strings.Join(append(slices.Clone(path), key), ".")] = defaults[key]
		}
	}
	for key, property := range properties {
		at := append(slices.Clone(path), key)
		inner, _ := property.(map[string]any)
		if _, deeper := inner["properties"]; deeper {
			under, _ := defaults[key].(map[string]any)
			walk(at, inner, under, all)
			continue
		}
		all[strings.Join(at, ".")] = defaults[key]
	}
}

// other is a value that is not the default.
func other(path string, value any) any {
	if sample, found := samples[path]; found {
		return sample
	}
	switch v := value.(type) {
	case bool:
		return !v
	case string:
		return "changed" + v
	case float64:
		return v + 1
	case map[string]any:
		return map[string]any{"changed": "yes"}
	case []any:
		return []any{"changed"}
	default:
		return "changed"
	}
}

func contextOf(path string) string {
	longest, context := 0, "{}"
	for prefix, values := range contexts {
		if (path == prefix || strings.HasPrefix(path, prefix+".")) && len(prefix) > longest {
			longest, context = len(prefix), values
		}
	}
	return context
}

func set(in map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		next := map[string]any{}
		in[key] = next
		in = next
	}
	in[path[len(path)-1]] = value
}

func render(t *testing.T, changed map[string]any, context string) map[string]string {
	t.Helper()
	text, err := renderText(t.Context(), changed, context)
	if err != nil {
		t.Fatalf("%s: %v", context, err)
	}
	return byName(t, text)
}

func renderText(ctx context.Context, changed map[string]any, context string) (string, error) {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(context), &values); err != nil {
		return "", err
	}
	merge(values, changed)
	text, err := yaml.Marshal(values)
	if err != nil {
		return "", err
	}
	return template(ctx, string(text))
}

func merge(into, from map[string]any) {
	for key, value := range from {
		under, both := into[key].(map[string]any)
		if over, ok := value.(map[string]any); ok && both {
			merge(under, over)
			continue
		}
		into[key] = value
	}
}

// byName are the objects by kind and name. A token that is made anew in each rendering is
// left out.
func byName(t *testing.T, text string) map[string]string {
	t.Helper()
	objects, err := installation.Decode(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, object := range objects {
		if strings.HasSuffix(object.GetName(), "-metrics-token") {
			for key := range object.Object["data"].(map[string]any) {
				object.Object["data"] = map[string]any{key: "made"}
			}
		}
		encoded, err := json.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		all[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = string(encoded)
	}
	return all
}

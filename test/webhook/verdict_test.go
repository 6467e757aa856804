package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/validationcases"
)

func dryRun(ctx context.Context, object client.Object) error {
	return cluster.Client.Create(ctx, object, client.DryRunAll)
}

func graphOf(namespace, name, spec string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment",
		"metadata": map[string]any{"namespace": namespace, "name": name},
	}}
	var decoded map[string]any
	if err := yaml.Unmarshal([]byte(spec), &decoded); err != nil {
		panic(err) // a literal of a test
	}
	object.Object["spec"] = decoded
	return object
}

// TestCasebookByTheAPIServer creates every case, on trial: schemas refuse some,
// the webhooks the others, and none is refused that is good.
func TestCasebookByTheAPIServer(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	valid, invalid := cases(t)
	byWebhook := 0
	for i, c := range slices.Concat(valid, invalid) {
		t.Run(c.Rule, func(t *testing.T) {
			object, err := c.Object(ns, fmt.Sprintf("case-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			err = dryRun(t.Context(), object)
			if len(c.Refused) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				t.Fatalf("got %v, want a refusal of %q", err, c.Refused)
			}
			webhook := strings.Contains(err.Error(), "admission webhook")
			if webhook == c.BySchema {
				t.Errorf("by a webhook: %v: %v", webhook, err)
			}
			for _, path := range c.Refused {
				if !strings.Contains(dotted(err.Error()), dotted(path)) {
					t.Errorf("%s is not named: %v", path, err)
				}
			}
			if webhook {
				byWebhook++
			}
		})
	}
	summary.Line(t, "admission: %d bad objects refused (%d by webhooks), %d good ones admitted", len(invalid), byWebhook, len(valid))
}

// dotted spells a path the way schemas do, which know no keys.
func dotted(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}

// TestCasebookByTheController makes the bad objects in the operator's name, whose
// writes no webhook judges. It comes to the same verdict.
func TestCasebookByTheController(t *testing.T) {
	t.Parallel()
	_, invalid := cases(t)
	ns, unjudged := namespace(t, nil), asOperator(t)
	type made struct {
		rule   string
		object *unstructured.Unstructured
		paths  []string
	}
	var all []made
	for i, c := range invalid {
		if c.BySchema || c.Kind == "dgdsa" {
			continue // an adapter is judged by whom it belongs to: see TestARogueAdapterScalesNothing
		}
		object, err := c.Object(ns, fmt.Sprintf("bad-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if err := unjudged.Create(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", c.Rule, err)
		}
		t.Cleanup(func() { cluster.Client.Delete(context.Background(), object) })
		all = append(all, made{c.Rule, object, c.Refused})
	}
	for _, m := range all {
		eventually(t, m.rule+": a condition that names "+fmt.Sprint(m.paths), func(ctx context.Context) error {
			if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(m.object), m.object); err != nil {
				return err
			}
			conditions, _, err := unstructured.NestedSlice(m.object.Object, "status", "conditions")
			if err != nil {
				return err
			}
			for _, path := range m.paths {
				if !slices.ContainsFunc(conditions, func(c any) bool {
					condition, _ := c.(map[string]any)
					return condition["status"] == "False" && strings.Contains(fmt.Sprint(condition["message"]), path)
				}) {
					return fmt.Errorf("%s is not named: %v", path, conditions)
				}
			}
			return nil
		})
	}
	summary.Line(t, "admission: %d bad objects refused by controllers where no webhook looks", len(all))
}

func cases(t *testing.T) (valid, invalid []validationcases.Case) {
	t.Helper()
	valid, err := validationcases.Valid()
	if err != nil {
		t.Fatal(err)
	}
	if invalid, err = validationcases.Invalid(); err != nil {
		t.Fatal(err)
	}
	return valid, invalid
}

// TestChanges asks about updates of objects that are there.
func TestChanges(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	for rule, c := range map[string]struct{ from, to, refused string }{
		"one node does not become several": {`{services: {a: {}}}`, `{services: {a: {multinode: {nodeCount: 2}}}}`, "spec.services[a].multinode"},
		"a created claim keeps its class":  {claim("s"), claim("t"), "spec.pvcs[0].storageClass"},
		"the engine stays":                 {`{backendFramework: vllm, services: {a: {}}}`, `{backendFramework: sglang, services: {a: {}}}`, "spec.backendFramework"},
		"services come and go":             {`{services: {a: {}, b: {}}}`, `{services: {a: {}, c: {}}}`, ""},
		"what is bad is refused later too": {`{services: {a: {}}}`, `{services: {a: {}, A: {}}}`, "spec.services[a]"},
	} {
		t.Run(rule, func(t *testing.T) {
			live := graphOf(ns, "", c.from)
			live.SetGenerateName("change-")
			if err := cluster.Client.Create(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			next := live.DeepCopy()
			next.Object["spec"] = graphOf(ns, "", c.to).Object["spec"]
			patch := client.MergeFrom(live)
			err := cluster.Client.Patch(t.Context(), next, patch, client.DryRunAll)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("got %v, want a refusal of %q", err, c.refused)
			}
		})
	}
}

func claim(class string) string {
	return `{services: {a: {}}, pvcs: [{name: c, create: true, size: 1Gi, volumeAccessMode: ReadWriteOnce, storageClass: ` + class + `}]}`
}

// TestWhatIsOnItsWayOutGoes: nobody is asked about it, so not even a bad object
// and an operator that is away keep it.
func TestWhatIsOnItsWayOutGoes(t *testing.T) {
	t.Parallel()
	ns := namespace(t, nil)
	live := graphOf(ns, "leaving", `{services: {a: {}}}`)
	live.SetFinalizers([]string{"example.com/keep"})
	if err := cluster.Client.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null},"spec":{"services":{"a_b":{}}}}`))
	if err := cluster.Client.Patch(t.Context(), live, patch); err != nil {
		t.Errorf("refused: %v", err)
	}
	eventually(t, "it to be gone", func(ctx context.Context) error {
		err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(live), live)
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is still there"), err)
		}
		return nil
	})
}

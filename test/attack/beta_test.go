package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// alphaVersion and betaVersion are the two versions that tenants write.
var alphaVersion, betaVersion = v1alpha1.SchemeGroupVersion.String(), v1beta1.SchemeGroupVersion.String()

// hasBeta are the attacks in which a tenant writes an object that has two versions;
// they are made once more, with such objects written as v1beta1.
var hasBeta struct {
	sync.Mutex
	names map[string]bool
}

// versioned is a tenant's client that notes whether objects of two versions are
// written, or writes them as v1beta1.
func (s *scene) versioned(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			written, ok := s.asBeta(o)
			if !ok {
				return c.Create(ctx, o, options...)
			}
			err := c.Create(ctx, written, options...)
			o.SetName(written.GetName())
			o.SetUID(written.GetUID())
			return err
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if written, ok := s.asBeta(o); ok {
				return c.Update(ctx, written, options...)
			}
			return c.Update(ctx, o, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if fields, ok := o.(interface{ UnstructuredContent() map[string]any }); ok {
				if written, ok := s.asBeta(&unstructured.Unstructured{Object: fields.UnstructuredContent()}); ok {
					return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(written), options...)
				}
			}
			return c.Apply(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			if written, diff, ok := s.patchAsBeta(ctx, o, p); ok {
				return c.Patch(ctx, written, diff, options...)
			}
			return c.Patch(ctx, o, p, options...)
		},
	})
}

// note reports whether an object has two versions, and remembers it of the attack.
func (s *scene) note(o client.Object) (kind string, converts bool) {
	gvk, err := apiutil.GVKForObject(o, s.Client.Scheme())
	if err != nil || gvk.GroupVersion() != v1alpha1.SchemeGroupVersion || !conversion.Convertible(gvk.Kind) {
		return "", false
	}
	hasBeta.Lock()
	defer hasBeta.Unlock()
	if hasBeta.names == nil {
		hasBeta.names = map[string]bool{}
	}
	hasBeta.names[s.attack.name] = true
	return gvk.Kind, s.attack.beta
}

// asBeta is an object as somebody writes it who knows v1beta1 alone: what that
// cannot say is in a payload.
func (s *scene) asBeta(o client.Object) (*unstructured.Unstructured, bool) {
	s.Helper()
	kind, converts := s.note(o)
	if !converts {
		return nil, false
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		s.Fatal(err)
	}
	fields["apiVersion"], fields["kind"] = alphaVersion, kind
	return s.converted(fields, betaVersion), true
}

func (s *scene) converted(fields map[string]any, to string) *unstructured.Unstructured {
	s.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		s.Fatal(err)
	}
	result, err := conversion.Convert(raw, to)
	if err != nil {
		s.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(result.JSON, &o.Object); err != nil {
		s.Fatal(err)
	}
	if to == betaVersion {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", v1alpha1.AnnotationWrittenAs)
		unstructured.RemoveNestedField(o.Object, "status")
	}
	return o
}

// patchAsBeta is the difference that a patch of v1alpha1 makes in v1beta1.
func (s *scene) patchAsBeta(ctx context.Context, o client.Object, p client.Patch) (client.Object, client.Patch, bool) {
	s.Helper()
	kind, converts := s.note(o)
	if !converts || p.Type() != types.MergePatchType {
		return nil, nil, false
	}
	data, err := p.Data(o)
	if err != nil {
		s.Fatal(err)
	}
	live := object(betaVersion, kind, o.GetNamespace(), o.GetName())
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		s.Fatal(err)
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		s.Fatal(err)
	}
	alpha := s.converted(live.Object, alphaVersion)
	mergeInto(alpha.Object, change)
	before, after := mustJSON(live), mustJSON(s.converted(alpha.Object, betaVersion))
	diff, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	if err != nil {
		s.Fatal(err)
	}
	return object(betaVersion, kind, o.GetNamespace(), o.GetName()), client.RawPatch(types.MergePatchType, diff), true
}

// mergeInto is a merge patch of RFC 7386.
func mergeInto(target, change map[string]any) {
	for key, value := range change {
		inner, nested := value.(map[string]any)
		switch {
		case value == nil:
			delete(target, key)
		case nested:
			below, _ := target[key].(map[string]any)
			if below == nil {
				below = map[string]any{}
			}
			mergeInto(below, inner)
			target[key] = below
		default:
			target[key] = value
		}
	}
}

// attacksInBeta makes the attacks again that can be written as v1beta1.
func attacksInBeta(t *testing.T) {
	held, through := tally.held, tally.through
	t.Run("all", func(t *testing.T) {
		for _, a := range attacks {
			hasBeta.Lock()
			written := hasBeta.names[a.name]
			hasBeta.Unlock()
			if !written || a.webhooksDown || a.unbound || a.alphaOnly != "" {
				continue
			}
			a.beta = true
			t.Run(a.name, func(t *testing.T) { t.Parallel(); a.both(t) })
		}
	})
	summary.Line(t, "attacks written as v1beta1: %d held as shipped, %d of them got through without their guard", tally.held-held, tally.through-through)
	if tally.held-held == 0 {
		t.Error("no attack was made")
	}
}

// forged is an object of v1beta1 that shows one thing and has another in its payload.
func forged(kind, ns, name, spec, key, payload string) *unstructured.Unstructured {
	o := ofOurs(kind, ns, name, spec)
	o.SetAPIVersion(betaVersion)
	o.SetAnnotations(map[string]string{key: payload})
	return o
}

const (
	shown        = `{components: [{name: a, podTemplate: {spec: {serviceAccountName: mine, containers: [{name: main, image: "dynamo-mocker:dev", args: ["sleep infinity"], env: [{name: A, value: good}]}]}}}]}`
	publicHost   = `{"enabled":true,"host":"www","hostSuffix":"bank.com","useVirtualService":true,"virtualServiceGateway":"istio-system/public"}`
	otherAccount = `{"version":1,"spec":{"services":{"a":{"extraPodSpec":{"serviceAccountName":"admin","mainContainer":{"image":"evil"}}}}}}`
	otherEnv     = `{"version":1,"spec":{"services":{"a":{"envs":[{"name":"A","value":"evil"}]}}}}`
	otherJob     = `{"version":1,"spec":{"overrides":{"profilingJob":{"template":{"spec":{"serviceAccountName":"admin"}}}}}}`
)

// stored is the service of a graph as the operator reads it.
func (s *scene) stored(ns, name string) *v1alpha1.SharedSpec {
	s.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := s.Client.Get(s.ctx, types.NamespacedName{Namespace: ns, Name: name}, dgd); err != nil {
		s.Fatal(err)
	}
	service := dgd.Spec.Services["a"]
	if service == nil {
		s.Fatalf("no service: %+v", dgd.Spec)
	}
	return service
}

var _ = add(
	attack{
		name:   "a payload of a v1beta1 graph takes the host of others at a gateway",
		heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			g := forged("DynamoGraphDeployment", ns, "g", shown, v1alpha1.AnnotationGraphPayload, `{"version":1,"spec":{"services":{"a":{"ingress":`+publicHost+`}}}}`)
			return s.appears(virtualService(ns), s.tenant(ns, "edit").Create(s.ctx, g))
		},
	},
	attack{
		name:   "a payload of a v1beta1 component takes the host of others at a gateway",
		heldBy: []barrier{policy(componentIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			c := forged("DynamoComponentDeployment", ns, "g-a", `{name: a, podTemplate: {spec: {containers: [{name: main, image: "dynamo-mocker:dev", args: ["sleep infinity"]}]}}}`,
				v1alpha1.AnnotationComponentPayload, `{"version":1,"spec":{"ingress":`+publicHost+`}}`)
			return s.appears(virtualService(ns), s.tenant(ns, "edit").Create(s.ctx, c))
		},
	},
	attack{
		name:   "a payload of a v1beta1 request has its graph made in another namespace",
		heldBy: []barrier{policy(requestPolicy), code(requestplan.GuardConsent), code(requestplan.GuardPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			r := s.converted(requestFor(ns, victim).Object, betaVersion)
			if spec := string(mustJSON(&unstructured.Unstructured{Object: map[string]any{"spec": r.Object["spec"], "kind": "x"}})); strings.Contains(spec, victim) {
				s.Fatalf("the request shows it: %s", spec)
			}
			if err := s.tenant(ns, "edit").Create(s.ctx, r); err != nil {
				return s.refused(err)
			}
			s.eventually("the graph", s.graphIn(victim, "r"))
			return gotThrough("there is a graph in %s", victim)
		},
	},
	attack{
		name:   "a payload gives the pods of a v1beta1 graph another account and image than it shows",
		heldBy: []barrier{design("of a payload only parts are read that decide neither account nor image")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			g := forged("DynamoGraphDeployment", ns, "g", shown, v1alpha1.AnnotationGraphPayload, otherAccount)
			if err := s.tenant(ns, "edit").Create(s.ctx, g); err != nil {
				return s.refused(err)
			}
			spec := s.stored(ns, "g").ExtraPodSpec
			if account, image := spec.ServiceAccountName, spec.MainContainer.Image; account != "mine" || image != "dynamo-mocker:dev" {
				return gotThrough("account %s, image %s", account, image)
			}
			return held("account and image are those that the graph shows")
		},
	},
	attack{
		name:   "a payload gives the pods of a v1beta1 graph another environment than it shows",
		heldBy: []barrier{code(conversion.GuardPayload)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			g := forged("DynamoGraphDeployment", ns, "g", shown, v1alpha1.AnnotationGraphPayload, otherEnv)
			if err := s.tenant(ns, "edit").Create(s.ctx, g); err != nil {
				return s.refused(err)
			}
			text := fmt.Sprintf("%+v %+v", s.stored(ns, "g").Envs, s.stored(ns, "g").ExtraPodSpec.MainContainer)
			if strings.Contains(text, "evil") {
				return gotThrough("%s", text)
			}
			return held("the environment is the one that the graph shows")
		},
	},
	attack{
		name:   "a payload of a v1alpha1 request names an account for its profiler that only v1beta1 shows",
		heldBy: []barrier{code(conversion.GuardOverrides)}, alphaOnly: "it is about a payload that v1beta1 has not",
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			r := requestOf(ns, "r", "")
			r.SetAnnotations(map[string]string{v1alpha1.AnnotationRequestPayload: otherJob})
			if err := s.tenant(ns, "edit").Create(s.ctx, r); err != nil {
				return s.refused(err)
			}
			seen := object(betaVersion, "DynamoGraphDeploymentRequest", ns, "r")
			if err := s.Client.Get(s.ctx, client.ObjectKeyFromObject(seen), seen); err != nil {
				s.Fatal(err)
			}
			if overrides, found, err := unstructured.NestedMap(seen.Object, "spec", "overrides"); err != nil || found {
				return gotThrough("overrides %v %v", overrides, err)
			}
			return held("the request has no overrides in either version")
		},
	},
	attack{
		name:      "a graph that is too large for its other version keeps everybody's from being read",
		heldBy:    []barrier{code(conversion.GuardAnnotations)},
		alphaOnly: "it is about what v1beta1 cannot say",
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "other", idle))
			g := graphOf(ns, "g", idle)
			if err := unstructured.SetNestedField(g.Object, strings.Repeat("x", 300<<10), "spec", "services", "a", "annotations", "a"); err != nil {
				s.Fatal(err)
			}
			if err := s.tenant(ns, "edit").Create(s.ctx, g); err != nil {
				return s.refused(err)
			}
			defer func() {
				if err := s.Client.Delete(context.Background(), g); err != nil {
					s.Error(err)
				}
			}()
			once, err := client.New(s.Config, client.Options{Scheme: s.Client.Scheme()}) // a failure is not to be asked again
			if err != nil {
				s.Fatal(err)
			}
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(betaVersion)
			list.SetKind("DynamoGraphDeploymentList")
			if err := once.List(s.ctx, list, client.InNamespace(ns)); err != nil {
				return gotThrough("%v", err)
			}
			return held("%d graphs are read", len(list.Items))
		},
	},
)

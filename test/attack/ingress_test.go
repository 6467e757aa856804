package attack

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

const (
	graphIngressPolicy     = "dynamo-operator-graph-ingress"
	componentIngressPolicy = "dynamo-operator-component-ingress"

	// mesh takes the host of others from every sidecar, public from a gateway that
	// serves everybody.
	viaMesh   = `ingress: {enabled: true, host: api, hostSuffix: bank.svc.cluster.local, useVirtualService: true, virtualServiceGateway: mesh}`
	viaPublic = `ingress: {enabled: true, host: www, hostSuffix: bank.com, useVirtualService: true, virtualServiceGateway: istio-system/public}`
	// What inherits the operator's class or gateway names neither.
	inheritsClass   = `ingress: {enabled: true, host: www, hostSuffix: bank.com}`
	inheritsDotted  = `ingress: {enabled: true, host: www.bank}`
	inheritsGateway = `ingress: {enabled: true, host: www, hostSuffix: bank.com, useVirtualService: true}`
	hostAlone       = `ingress: {enabled: true, host: www}`

	viaClass = `ingress: {enabled: true, host: www, hostSuffix: bank.com, ingressControllerClassName: public, annotations: {nginx.ingress.kubernetes.io/server-snippet: evil}}`
)

func routed(ingress string) string {
	return `{services: {a: {` + ingress + `, ` + image + `}}}`
}

// onlyOurs is a tenant who may write graphs and components and nothing else.
func onlyOurs(s *scene, ns string) client.WithWatch {
	return s.tenant(ns, s.role(allOf("nvidia.com", "dynamographdeployments"), allOf("nvidia.com", "dynamocomponentdeployments")))
}

// appears is whether an object comes about before others that were made later are
// looked after.
func (s *scene) appears(o client.Object, refusal error) outcome {
	s.Helper()
	if refusal != nil {
		return s.refused(refusal)
	}
	if s.either(fmt.Sprintf("%T %s", o, o.GetName()), s.exists(o), s.laterOnes(o.GetNamespace())) {
		return gotThrough("the operator made it")
	}
	return held("the operator does not make it")
}

func virtualService(ns string) *render.VirtualService {
	return &render.VirtualService{ObjectMeta: meta(ns, "g-a")}
}

var _ = add(
	attack{
		name: "an editor without rights to Istio takes the host of others at a gateway", finding: "S6",
		heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.appears(virtualService(ns), s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g", routed(viaPublic))))
		},
	},
	attack{
		name: "an editor without rights to Istio takes a host of others within the mesh", finding: "S6",
		heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.appears(virtualService(ns), s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g", routed(viaMesh))))
		},
	},
	attack{
		name: "an editor without rights to Istio turns a VirtualService on later", finding: "S6",
		heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", routed(`replicas: 1`)))
			err := s.tenant(ns, "edit").Patch(s.ctx, graphOf(ns, "g", `{}`), client.RawPatch(types.MergePatchType, mustJSON(graphOf(ns, "g", `{services: {a: {`+viaPublic+`}}}`))))
			return s.appears(virtualService(ns), err)
		},
	},
	attack{
		name: "an editor without rights to Istio applies a component that has a VirtualService", finding: "S6",
		heldBy: []barrier{policy(componentIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			dcd := ofOurs("DynamoComponentDeployment", ns, "g-a", `{`+viaPublic+`, `+image+`}`)
			err := s.tenant(ns, "edit").Apply(s.ctx, client.ApplyConfigurationFromUnstructured(dcd), client.FieldOwner("mallory"))
			return s.appears(virtualService(ns), err)
		},
	},
	attack{
		name: "an editor without rights to Istio changes a component that the operator made", finding: "S6",
		heldBy: []barrier{policy(componentIngressPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", routed(`replicas: 1`)))
			dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: meta(ns, "g-a")}
			s.eventually("the component", s.exists(dcd))
			return s.refused(s.tenant(ns, "edit").Patch(s.ctx, dcd, merge(`{"spec":{"ingress":{"enabled":true,"host":"www","useVirtualService":true,"virtualServiceGateway":"mesh"}}}`), dryRun))
		},
	},
	attack{
		name: "somebody who may write graphs alone makes an Ingress with annotations for its controller", finding: "S6",
		heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.appears(&networkingv1.Ingress{ObjectMeta: meta(ns, "g-a")}, onlyOurs(s, ns).Create(s.ctx, graphOf(ns, "g", routed(viaClass))))
		},
	},
	attack{
		name: "somebody who may write graphs alone takes a host of others for the operator's class", finding: "S6",
		heldBy: []barrier{policy(graphIngressPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.refused(onlyOurs(s, ns).Create(s.ctx, graphOf(ns, "g", routed(inheritsClass)), dryRun))
		},
	},
	attack{
		name: "somebody who may write components alone takes a host of others for the operator's class", finding: "S6",
		heldBy: []barrier{policy(componentIngressPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.refused(onlyOurs(s, ns).Create(s.ctx, ofOurs("DynamoComponentDeployment", ns, "g", `{`+inheritsDotted+`, `+image+`}`), dryRun))
		},
	},
	attack{
		name: "an editor without rights to Istio takes a host of others at the operator's gateway", finding: "S6",
		heldBy: []barrier{policy(graphIngressPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.refused(s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g", routed(inheritsGateway)), dryRun))
		},
	},
	attack{
		name: "somebody who may write graphs alone adds an annotation to the Ingress of another", finding: "S6",
		heldBy: []barrier{policy(graphIngressPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", routed(`ingress: {enabled: true, host: www, ingressControllerClassName: public}`)))
			return s.refused(onlyOurs(s, ns).Patch(s.ctx, graphOf(ns, "g", `{}`), merge(`{"spec":{"services":{"a":{"ingress":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"evil"}}}}}}`)))
		},
	},
)

func mustJSON(o interface{ MarshalJSON() ([]byte, error) }) []byte {
	text, err := o.MarshalJSON()
	if err != nil {
		panic(err) // a literal of a test
	}
	return text
}

// TestWhoMayMakeARouteHasItMade is the other side: rights suffice, and what is not
// about routes needs none.
func TestWhoMayMakeARouteHasItMade(t *testing.T) {
	worlds(t)
	s := newScene(t, shipped, attack{})
	ns := s.namespace(nil)
	alice := s.tenant(ns, "edit", s.role(allOf("networking.istio.io", "virtualservices")))
	if err := alice.Create(s.ctx, graphOf(ns, "g", routed(viaPublic))); err != nil {
		t.Fatal(err)
	}
	s.eventually("the VirtualService", s.exists(virtualService(ns)))
	bob := onlyOurs(s, ns)
	if err := bob.Patch(s.ctx, graphOf(ns, "g", `{}`), merge(`{"metadata":{"labels":{"a":"b"}},"spec":{"services":{"a":{"replicas":0}}}}`)); err != nil {
		t.Errorf("somebody without rights to Istio scales the graph: %v", err)
	}
	if err := bob.Create(s.ctx, graphOf(ns, "plain", routed(hostAlone)), dryRun); err != nil {
		t.Errorf("a host alone, which a graph of that name gets unasked: %v", err)
	}
	if err := bob.Create(s.ctx, graphOf(ns, "off", routed(`ingress: {enabled: false, host: www, useVirtualService: true, virtualServiceGateway: mesh}`)), dryRun); err != nil {
		t.Errorf("an ingress that is off: %v", err)
	}
}

// TestWithoutItsPolicyNoRouteIsMade: an operator that finds no policy authorises
// nobody, and says so. It takes the shipped world's policy away, so it does not run
// beside attacks.
func TestWithoutItsPolicyNoRouteIsMade(t *testing.T) {
	worlds(t)
	s := newScene(t, shipped, attack{})
	ns := s.namespace(nil)
	restore := shipped.withoutBinding(t, graphIngressPolicy)
	mallory := s.tenant(ns, "edit")
	s.eventually("the policy to be gone", func(ctx context.Context) error {
		return mallory.Create(ctx, graphOf(ns, "probe", routed(viaPublic)), dryRun)
	})
	// What the operator knew of the policy serves for ten seconds.
	s.eventually("a graph that is not routed, and says why", func(ctx context.Context) error {
		o := graphOf(ns, "", routed(viaPublic))
		o.SetGenerateName("g-")
		if err := mallory.Create(ctx, o); err != nil {
			return err
		}
		var reason string
		s.eventually("the graph to be judged", func(ctx context.Context) error {
			dgd := &v1alpha1.DynamoGraphDeployment{}
			if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: o.GetName()}, dgd); err != nil {
				return err
			}
			c := conditions.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
			if c == nil || (c.Status != metav1.ConditionTrue && c.Reason != v1alpha1.ReasonIngressNotAllowed) {
				return fmt.Errorf("condition %v", c)
			}
			reason = c.Reason
			return nil
		})
		if reason != v1alpha1.ReasonIngressNotAllowed {
			return fmt.Errorf("graph %s is routed", o.GetName())
		}
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: o.GetName() + "-a"}, &render.VirtualService{})
		if err := gone(err); err != nil {
			return fmt.Errorf("the VirtualService of graph %s, made on the last answer: %w", o.GetName(), err)
		}
		if err := s.Client.Get(ctx, types.NamespacedName{Namespace: ns, Name: o.GetName() + "-a"}, &corev1.Service{}); err != nil {
			t.Errorf("the rest of the graph: %v", err)
		}
		return nil
	})
	restore()
	s.eventually("the policy to be back", func(ctx context.Context) error {
		if err := mallory.Create(ctx, graphOf(ns, "probe", routed(viaPublic)), dryRun); err == nil {
			return fmt.Errorf("not yet")
		}
		return nil
	})
}

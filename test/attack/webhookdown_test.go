package attack

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// unasked is an attack with an object that the webhooks refuse, at a time when
// they cannot be asked: it is stored, and must not be acted on.
func unasked(name string, bad func(ns string) *unstructured.Unstructured, effect func(ns string) client.Object) attack {
	return attack{name: name, heldBy: []barrier{code(validation.Judgement)}, webhooksDown: true, try: func(s *scene) outcome {
		ns := s.namespace(nil)
		o := bad(ns)
		if err := s.tenant(ns, "edit").Create(s.ctx, o); err != nil {
			s.Fatalf("the API server refuses it without a webhook: %v", err)
		}
		if s.either("the object to be judged", s.exists(effect(ns)), s.invalid(bad(ns))) {
			return gotThrough("it is acted on")
		}
		return held("it says that it is not valid")
	}}
}

func deployment(name string) func(string) client.Object {
	return func(ns string) client.Object { return &appsv1.Deployment{ObjectMeta: meta(ns, name)} }
}

var _ = add(
	unasked("a graph that the webhooks refuse is stored and acted on", func(ns string) *unstructured.Unstructured {
		return graphOf(ns, "g", `{services: {a: {`+image+`}, b: {replicas: 1, ingress: {enabled: true, host: h, tls: {secretName: other/tls}}, `+image+`}}}`)
	}, deployment("g-a")),
	unasked("a component that the webhooks refuse is stored and acted on", func(ns string) *unstructured.Unstructured {
		return ofOurs("DynamoComponentDeployment", ns, "c", `{serviceName: c, ingress: {enabled: true, host: "a b"}, `+image+`}`)
	}, deployment("c")),
	attack{
		name: "a Lease of a tenant's own is stored while no webhook answers", finding: "S2", heldBy: []barrier{policy(scopePolicy)}, webhooksDown: true,
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.refused(leaseHolder(s, ns).Create(s.ctx, leaseIn(ns, "mallory")))
		},
	},
	attack{
		name: "a request for another namespace is stored while no webhook answers", finding: "S1", heldBy: []barrier{policy(requestPolicy)}, webhooksDown: true,
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			return s.refused(s.tenant(ns, "edit").Create(s.ctx, requestFor(ns, victim), dryRun))
		},
	},
	attack{
		name: "a host of others is taken while no webhook answers", finding: "S6", webhooksDown: true,
		heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			return s.appears(virtualService(ns), s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g", routed(viaPublic))))
		},
	},
	attack{
		name: "what a tenant may do is not more while no webhook answers", heldBy: []barrier{rights}, webhooksDown: true,
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			return s.refused(s.tenant(ns, "edit").Create(context.WithoutCancel(s.ctx), graphOf(victim, "g", idle), dryRun))
		},
	},
)

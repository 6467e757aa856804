package attack

import (
	"context"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/validation"
)

// Policies that ask whether the author of a graph or component may make alone what
// it is to be reached by.
const (
	graphIngressPolicy     = "dynamo-operator-graph-ingress"
	componentIngressPolicy = "dynamo-operator-component-ingress"
)

// Hosts of somebody else, through the mesh and through an ingress controller.
const (
	viaMesh  = `ingress: {enabled: true, host: bank, useVirtualService: true, virtualServiceGateway: istio-system/public}`
	viaClass = `ingress: {enabled: true, host: bank.example.com, ingressControllerClassName: nginx, annotations: {nginx.ingress.kubernetes.io/server-snippet: "return 200;"}}`
)

func virtualService(ns, name string) client.Object {
	return object("networking.istio.io/v1", "VirtualService", ns, name)
}

func ingress(ns, name string) client.Object { return &networkingv1.Ingress{ObjectMeta: meta(ns, name)} }

// reached is an attack by which a graph or component gets a host of somebody else.
func reached(name string, barriers []barrier, role func(*scene) []string, asked func(ns string) *unstructured.Unstructured, made func(ns string) client.Object) attack {
	return attack{name: name, finding: "S6", heldBy: barriers, try: func(s *scene) outcome {
		ns := s.namespace(nil)
		mallory := s.tenant(ns, role(s)...)
		if err := mallory.Create(s.ctx, asked(ns)); err != nil {
			return s.refused(err)
		}
		s.eventually("what it is reached by", s.exists(made(ns)))
		return gotThrough("there is %T %s", made(ns), made(ns).GetName())
	}}
}

func editor(*scene) []string { return []string{"edit"} }

// onlyGraphs is somebody who may write our kinds, and nothing of the network's.
func onlyGraphs(s *scene) []string {
	return []string{s.role(allOf("nvidia.com", "dynamographdeployments", "dynamocomponentdeployments"))}
}

const front = `componentType: frontend, `

var _ = add(
	reached("a graph takes a host of the mesh that its author may not", []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)}, editor,
		func(ns string) *unstructured.Unstructured {
			return graphOf(ns, "g", `{services: {f: {`+front+viaMesh+`, `+image+`}}}`)
		},
		func(ns string) client.Object { return virtualService(ns, "g-f") }),
	reached("a graph takes a host and annotations of an ingress controller that its author may not", []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)}, onlyGraphs,
		func(ns string) *unstructured.Unstructured {
			return graphOf(ns, "g", `{services: {f: {`+front+viaClass+`, `+image+`}}}`)
		},
		func(ns string) client.Object { return ingress(ns, "g-f") }),
	reached("a component takes a host of the mesh that its author may not", []barrier{policy(componentIngressPolicy), code(validation.IngressAllowed)}, editor,
		func(ns string) *unstructured.Unstructured {
			return ofOurs("DynamoComponentDeployment", ns, "c", `{serviceName: c, `+front+viaMesh+`, `+image+`}`)
		},
		func(ns string) client.Object { return virtualService(ns, "c") }),
	reached("a component takes a host of an ingress controller that its author may not", []barrier{policy(componentIngressPolicy), code(validation.IngressAllowed)}, onlyGraphs,
		func(ns string) *unstructured.Unstructured {
			return ofOurs("DynamoComponentDeployment", ns, "c", `{serviceName: c, `+front+viaClass+`, `+image+`}`)
		},
		func(ns string) client.Object { return ingress(ns, "c") }),
	attack{
		name: "a graph that is there already is led to a host of the mesh", finding: "S6", heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			mallory := s.tenant(ns, "edit")
			if err := mallory.Create(s.ctx, graphOf(ns, "g", `{services: {f: {`+front+image+`}}}`)); err != nil {
				s.Fatal(err)
			}
			s.eventually("the graph's component", s.exists(object("nvidia.com/v1alpha1", "DynamoComponentDeployment", ns, "g-f")))
			if err := mallory.Patch(s.ctx, graphOf(ns, "g", `{}`), merge(
				`{"spec":{"services":{"f":{"ingress":{"enabled":true,"host":"bank","useVirtualService":true,"virtualServiceGateway":"istio-system/public"}}}}}`)); err != nil {
				return s.refused(err)
			}
			s.eventually("what it is reached by", s.exists(virtualService(ns, "g-f")))
			return gotThrough("there is a VirtualService")
		},
	},
	attack{
		name: "the component of a graph is led to a host of the mesh behind the graph's back", finding: "S6",
		heldBy: []barrier{policy(componentIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", `{services: {f: {`+front+image+`}}}`))
			component := object("nvidia.com/v1alpha1", "DynamoComponentDeployment", ns, "g-f")
			s.eventually("the graph's component", s.exists(component))
			err := s.tenant(ns, "edit").Patch(s.ctx, component, merge(
				`{"spec":{"ingress":{"enabled":true,"host":"bank","useVirtualService":true,"virtualServiceGateway":"istio-system/public"}}}`))
			if err != nil {
				return s.refused(err)
			}
			return gotThrough("the API server accepts it")
		},
	},
	attack{
		name: "a host that nobody was asked about is taken while no webhook answers", finding: "S6", webhooksDown: true,
		heldBy: []barrier{policy(graphIngressPolicy), code(validation.IngressAllowed)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			if err := s.tenant(ns, "edit").Create(s.ctx, graphOf(ns, "g", `{services: {f: {`+front+viaMesh+`, `+image+`}}}`)); err != nil {
				return s.refused(err)
			}
			s.eventually("what it is reached by", s.exists(virtualService(ns, "g-f")))
			return gotThrough("there is a VirtualService")
		},
	},
	attack{
		name: "a worker's pod publishes the metadata of another pod", finding: "S10", heldBy: []barrier{policy(metadataPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", idle))
			pod := s.podIn(ns, "g")
			worker := s.asPod(pod)
			forged := func(name string) *unstructured.Unstructured {
				return read(fmt.Sprintf(`{apiVersion: nvidia.com/v1alpha1, kind: DynamoWorkerMetadata, metadata: {name: %s}, spec: {data: {}}}`, name), ns)
			}
			s.eventually("the pod to publish its own", func(ctx context.Context) error { return worker.Create(ctx, forged(pod.Name), dryRun) })
			return s.refused(worker.Create(s.ctx, forged("another-pod")))
		},
	},
)

// metadataPolicy has a pod publish where it is found, and no other.
const metadataPolicy = "dynamo-operator-worker-metadata"

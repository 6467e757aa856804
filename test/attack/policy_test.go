package attack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

const (
	adapterPolicy  = "dynamo-operator-scaling-adapter"
	metadataPolicy = "dynamo-operator-worker-metadata"
)

// fromPod is a client with the token of a pod of a graph, and that pod's name.
func (s *scene) fromPod(ns, graph string) (client.WithWatch, string) {
	s.Helper()
	pod := s.podOf(ns, graph)
	account := &corev1.ServiceAccount{ObjectMeta: meta(ns, pod.Spec.ServiceAccountName)}
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	return s.withToken(account, bound), pod.Name
}

// podOf is a pod of a graph.
func (s *scene) podOf(ns, graph string) corev1.Pod {
	s.Helper()
	pods := &corev1.PodList{}
	s.eventually("a pod of graph "+graph, func(ctx context.Context) error {
		if err := s.Client.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels{v1alpha1.LabelGraphName: graph}); err != nil {
			return err
		}
		if len(pods.Items) == 0 {
			return errors.New("none yet")
		}
		return nil
	})
	return slices.MinFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}

// ofContainer is metadata that a pod controls, as that of its containers is.
func ofContainer(o client.Object, pod string, uid types.UID) client.Object {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: uid, Controller: new(true)}})
	return o
}

func metadataOf(ns, name string) client.Object {
	o := object("nvidia.com/v1alpha1", "DynamoWorkerMetadata", ns, name)
	o.Object["spec"] = map[string]any{"data": map[string]any{}}
	return o
}

// onMetadata lets a pod of graph g go for what another worker has published.
func onMetadata(name string, attempt func(s *scene, pod client.WithWatch, ns string) error) attack {
	return attack{name: name, heldBy: []barrier{policy(metadataPolicy)}, try: func(s *scene) outcome {
		ns := s.namespace(nil)
		s.create(graphOf(ns, "g", idle))
		pod, own := s.fromPod(ns, "g")
		s.create(metadataOf(ns, "victim"))
		if err := pod.Create(s.ctx, metadataOf(ns, own), dryRun); err != nil {
			s.Fatalf("a pod publishes its own: %v", err)
		}
		container := ofContainer(metadataOf(ns, own+"-engine-0"), own, s.podOf(ns, "g").UID)
		if err := pod.Create(s.ctx, container, dryRun); err != nil {
			s.Fatalf("a pod publishes what its container offers: %v", err)
		}
		return s.refused(attempt(s, pod, ns))
	}}
}

var _ = add(
	attack{
		name: "somebody who may write adapters alone makes one that poses as the operator's", heldBy: []barrier{policy(adapterPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(graphOf(ns, "g", scaled))
			dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: meta(ns, "g")}
			s.eventually("the graph", s.exists(dgd))
			a := adapter(ns, "rogue", "g", "a")
			a.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "nvidia.com/v1alpha1", Kind: "DynamoGraphDeployment", Name: "g", UID: dgd.UID, Controller: new(true),
			}}
			return s.refused(s.tenant(ns, s.role(allOf("nvidia.com", "dynamographdeploymentscalingadapters"))).Create(s.ctx, a))
		},
	},
	attack{
		name: "somebody who may write adapters alone leads one to another graph", heldBy: []barrier{policy(adapterPolicy)},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			s.create(adapter(ns, "mine", "mine", "a"))
			mallory := s.tenant(ns, s.role(allOf("nvidia.com", "dynamographdeploymentscalingadapters")))
			return s.refused(mallory.Patch(s.ctx, adapter(ns, "mine", "", ""), merge(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`)))
		},
	},
	onMetadata("a pod publishes the metadata of a worker that it is not", func(s *scene, pod client.WithWatch, ns string) error {
		return pod.Create(s.ctx, metadataOf(ns, "other"))
	}),
	onMetadata("a pod publishes metadata under a name that the server makes up", func(s *scene, pod client.WithWatch, ns string) error {
		o := metadataOf(ns, "")
		o.SetGenerateName("victim-")
		return pod.Create(s.ctx, o)
	}),
	onMetadata("a pod publishes what it says is of another's container", func(s *scene, pod client.WithWatch, ns string) error {
		return pod.Create(s.ctx, ofContainer(metadataOf(ns, s.podOf(ns, "g").Name+"-engine-0"), "victim", "another"))
	}),
	onMetadata("a pod publishes the metadata of the next node of its group as a container's", func(s *scene, pod client.WithWatch, ns string) error {
		own := s.podOf(ns, "g")
		return pod.Create(s.ctx, ofContainer(metadataOf(ns, own.Name+"-1"), own.Name, own.UID))
	}),
	onMetadata("a pod takes over metadata that begins with its name", func(s *scene, pod client.WithWatch, ns string) error {
		own := s.podOf(ns, "g")
		name := own.Name + "-engine-0"
		s.create(metadataOf(ns, name))
		return pod.Patch(s.ctx, metadataOf(ns, name), merge(fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":%q,"uid":%q}]}}`, own.Name, own.UID)))
	}),
	onMetadata("a pod changes the metadata of another", func(s *scene, pod client.WithWatch, ns string) error {
		return pod.Patch(s.ctx, metadataOf(ns, "victim"), merge(`{"spec":{"data":{"endpoints":{"evil":{}}}}}`))
	}),
	onMetadata("a pod deletes the metadata of another", func(s *scene, pod client.WithWatch, ns string) error {
		return pod.Delete(s.ctx, metadataOf(ns, "victim"))
	}),
	attack{
		name: "a Lease whose name the server completes keeps the operator out", finding: "S2",
		heldBy: []barrier{design("the server completes names with letters that the Lease's name does not end in")},
		try: func(s *scene) outcome {
			ns := s.namespace(nil)
			lease := leaseIn(ns, "mallory")
			lease.Name, lease.GenerateName = "", strings.TrimSuffix(namespacescope.LeaseName, "scope")
			if err := leaseHolder(s, ns).Create(s.ctx, lease); err != nil {
				return s.refused(err)
			}
			if s.leftAlone(ns) {
				return gotThrough("the operator leaves the namespace to mallory")
			}
			return held("it is called %s", lease.Name)
		},
	},
)

// TestANamespaceTakesItsLeaseAlong: the policy does not stand in the way of a
// namespace that is deleted.
func TestANamespaceTakesItsLeaseAlong(t *testing.T) {
	worlds(t)
	s := newScene(t, shipped, attack{})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "leaving-"}}
	s.create(ns)
	s.create(leaseIn(ns.Name, "the operator of this namespace"))
	if err := s.Client.Delete(s.ctx, ns); err != nil {
		t.Fatal(err)
	}
	s.eventually("the namespace to go", func(ctx context.Context) error {
		return gone(s.Client.Get(ctx, client.ObjectKeyFromObject(ns), &corev1.Namespace{}))
	})
}

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAGroupWithAnotherNumberOfNodesIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.spanningRest("wide", 2))
	w.ready("wide")
	before := w.group("wide-decode-0")
	mark := w.mark()
	w.patchGraph("wide", `{"spec":{"services":{"decode":{"multinode":{"nodeCount":3}}}}}`)
	w.eventually("a group of three", func(ctx context.Context) error {
		set := &lwsv1.LeaderWorkerSet{}
		if err := w.cluster.Client.Get(ctx, w.key("wide-decode-0"), set); err != nil {
			return err
		}
		if set.UID == before.UID || *set.Spec.LeaderWorkerTemplate.Size != 3 {
			return fmt.Errorf("size %d", *set.Spec.LeaderWorkerTemplate.Size)
		}
		return nil
	})
	w.ready("wide")
	if pods := w.count("wide", "decode"); pods != 3 {
		t.Errorf("%d pods", pods)
	}
	for _, one := range w.byOperator(mark) {
		if one.Status.Code >= 400 && one.Status.Code != 404 && one.Status.Code != 409 {
			t.Errorf("%s %s: %d", one, one.Ref.Name, one.Status.Code)
		}
	}
}

// TestAClaimThatCannotGrowIsRefusedAndTheGraphGoesOn uses a class of storage that
// cannot.
func TestAClaimThatCannotGrowIsRefusedAndTheGraphGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dgd := w.restful("stored")
	dgd.Spec.PVCs = []v1alpha1.PVC{{Name: "cache", Create: new(true), Size: new(resource.MustParse("1Gi")), StorageClass: "standard", VolumeAccessMode: "ReadWriteOnce"}}
	w.create(dgd)
	w.ready("stored")
	w.patchGraph("stored", `{"spec":{"pvcs":[{"name":"cache","create":true,"size":"2Gi","storageClass":"standard","volumeAccessMode":"ReadWriteOnce"}]}}`)
	w.eventually("the graph to say what cannot grow", func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := w.cluster.Client.Get(ctx, w.key("stored"), dgd); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonImmutableField {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	w.settled()
	mark := w.mark()
	w.settled()
	if writes := w.byOperator(mark); len(writes) > 0 {
		t.Errorf("an error without end: %s", tally(writes))
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = w.namespace, "cache"
	if err := w.cluster.Client.Delete(w.ctx, claim); err != nil {
		t.Fatal(err)
	}
	w.ready("stored")
	if err := w.cluster.Client.Get(w.ctx, w.key("cache"), claim); err != nil {
		t.Fatal(err)
	}
	if got := claim.Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Errorf("a deleted claim was made again with %s", got)
	}
}

// spanningRest is a graph with a service that spans nodes and does nothing.
func (w world) spanningRest(name string, nodes int32) *v1alpha1.DynamoGraphDeployment {
	dgd := w.restful(name)
	delete(dgd.Spec.Services, "prefill")
	decode := dgd.Spec.Services["decode"]
	decode.Multinode = &v1alpha1.Multinode{NodeCount: nodes}
	decode.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	return dgd
}

func (w world) group(name string) *lwsv1.LeaderWorkerSet {
	w.Helper()
	set := &lwsv1.LeaderWorkerSet{}
	if err := w.cluster.Client.Get(w.ctx, w.key(name), set); err != nil {
		w.Fatal(err)
	}
	return set
}

// count is the number of pods of a service, those on their way out included.
func (w world) count(graphName, service string) int {
	w.Helper()
	n := 0
	for _, pod := range w.pods(w.ctx) {
		if pod.Labels[v1alpha1.LabelGraphName] == graphName && pod.Labels[v1alpha1.LabelComponent] == service {
			n++
		}
	}
	return n
}

func (w world) patchGraph(name, patch string) {
	w.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Namespace, dgd.Name = w.namespace, name
	if err := w.cluster.Client.Patch(w.ctx, dgd, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatal(err)
	}
}

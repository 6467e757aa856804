package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
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

// TestGroupsTakeAChangeOneAfterTheOther follows two groups of nodes: one serves at
// any time, whether they are made again, their pods replaced, or the first of them
// does not come up.
func TestGroupsTakeAChangeOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dgd := w.spanningRest("wide", 2)
	dgd.Spec.Services["decode"].Replicas = new(int32(2))
	w.create(dgd)
	w.ready("wide")
	fewest := w.followGroups("wide-decode-0", "wide-decode-1")
	before := []*lwsv1.LeaderWorkerSet{w.group("wide-decode-0"), w.group("wide-decode-1")}
	w.patchGraph("wide", `{"spec":{"services":{"decode":{"multinode":{"nodeCount":3}}}}}`)
	w.eventually("groups of three", func(context.Context) error {
		for _, old := range before {
			set := &lwsv1.LeaderWorkerSet{}
			if err := w.cluster.Client.Get(w.ctx, w.key(old.Name), set); err != nil {
				return err
			}
			if set.UID == old.UID {
				return fmt.Errorf("%s is the old one", old.Name)
			}
		}
		return nil
	})
	w.ready("wide")
	if pods := w.count("wide", "decode"); pods != 6 {
		t.Errorf("%d pods", pods)
	}
	w.patchGraph("wide", `{"spec":{"restart":{"id":"1"}}}`)
	w.eventually("the restart to be completed", func(context.Context) error {
		if r := w.graph("wide").Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseCompleted {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
	for _, pod := range w.pods(w.ctx) {
		if got := pod.Annotations[v1alpha1.AnnotationRestartAt]; pod.DeletionTimestamp == nil && pod.Labels[v1alpha1.LabelComponent] == "decode" && got != "1" {
			t.Errorf("%s carries restart %q", pod.Name, got)
		}
	}
	w.patchGraph("wide", `{"spec":{"services":{"decode":{"extraPodMetadata":{"annotations":{"localcluster.dynamo/image-pull-error":"true"}}}}}}`)
	w.eventually("the graph to say what is wrong, and who waits", func(context.Context) error {
		status := w.graph("wide").Status
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != string(diagnosis.ImageNotFound) || !strings.HasSuffix(ready.Message, "; still as before: wide-decode-1") {
			return fmt.Errorf("condition %v", ready)
		}
		if n := status.Services["decode"].UpdatedReplicas; n != 1 {
			return fmt.Errorf("%d groups of two are updated", n)
		}
		return nil
	})
	w.patchGraph("wide", `{"spec":{"services":{"decode":{"extraPodMetadata":null}}}}`)
	w.ready("wide")
	if n := fewest(); n < 1 {
		t.Error("for a moment no group served")
	}
}

// followGroups counts the groups that serve, all of which do now, until it is
// asked for the fewest.
func (w world) followGroups(names ...string) (fewest func() int) {
	w.Helper()
	var now lwsv1.LeaderWorkerSetList
	if err := w.cluster.Client.List(w.ctx, &now, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	events, err := w.cluster.Client.Watch(w.ctx, &lwsv1.LeaderWorkerSetList{}, client.InNamespace(w.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion}})
	if err != nil {
		w.Fatal(err)
	}
	serving := map[string]bool{}
	for _, name := range names {
		serving[name] = true
	}
	least, done := len(serving), make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			set, ok := event.Object.(*lwsv1.LeaderWorkerSet)
			if !ok {
				continue
			}
			delete(serving, set.Name)
			if event.Type != watch.Deleted && set.DeletionTimestamp == nil && set.Status.ReadyReplicas > 0 {
				serving[set.Name] = true
			}
			least = min(least, len(serving))
		}
	}()
	return func() int {
		events.Stop()
		<-done
		return least
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
	w.quiet(6 * time.Second) // it is no error without end
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

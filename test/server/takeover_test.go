package server

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestATakeoverKeepsPodsWhoseCommandHasAFlagThatWeAddAsWell: the original operator
// repeats a flag that the user gives. A command line without the repetition would
// replace every pod of a group that runs.
func TestATakeoverKeepsPodsWhoseCommandHasAFlagThatWeAddAsWell(t *testing.T) {
	w := newWorld(t)
	o := w.operate(silent)
	users := strings.Fields("--model m --tensor-parallel-size 1 --data-parallel-size 16 --data-parallel-hybrid-lb")
	dgd := w.graph("g", "decode")
	decode := dgd.Spec.Services["decode"]
	decode.Multinode = &v1alpha1.Multinode{NodeCount: 2}
	decode.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "8"}}
	decode.ExtraPodSpec.MainContainer.Command = strings.Fields("python3 -m dynamo.vllm")
	decode.ExtraPodSpec.MainContainer.Args = users
	w.create(dgd)
	set := exists(w, &lwsv1.LeaderWorkerSet{}, "g-decode-0")
	w.stop(o)

	// What the original leaves, as it was recorded.
	const theirs = "--data-parallel-hybrid-lb --data-parallel-size-local 8 --data-parallel-start-rank %s --data-parallel-address %s --data-parallel-rpc-port 13445"
	flags := func(rank, leader string) string {
		return strings.Replace(strings.Replace(theirs, "%s", rank, 1), "%s", leader, 1)
	}
	main := func(template *corev1.PodTemplateSpec) *corev1.Container { return &template.Spec.Containers[0] }
	main(set.Spec.LeaderWorkerTemplate.LeaderTemplate).Args = slices.Concat(users, strings.Fields(flags("0", "$(LWS_LEADER_ADDRESS)")))
	main(&set.Spec.LeaderWorkerTemplate.WorkerTemplate).Args = []string{
		"exec python3 -m dynamo.vllm " + strings.Join(users, " ") + " " + flags("$((8 * LWS_WORKER_INDEX))", "$LWS_LEADER_ADDRESS"),
	}
	if err := cluster.Client.Update(w.ctx, set, client.FieldOwner("manager")); err != nil {
		t.Fatal(err)
	}

	w.operate(silent)
	w.merge(dgd, `{"spec":{"services":{"decode":{"replicas":2}}}}`)
	exists(w, &lwsv1.LeaderWorkerSet{}, "g-decode-1") // the first was looked at before
	if now := get(w, &lwsv1.LeaderWorkerSet{}, "g-decode-0"); now.Generation != set.Generation {
		t.Errorf("the command line of a running group changed:\nleader %q\nworker %q", main(now.Spec.LeaderWorkerTemplate.LeaderTemplate).Args, main(&now.Spec.LeaderWorkerTemplate.WorkerTemplate).Args)
	}
}

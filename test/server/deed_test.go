package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/plan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/auditlog"
)

// plan is what the command line says of a change, which is made to a copy.
func (w world) plan(dgd *v1alpha1.DynamoGraphDeployment, tag, configuration string) plan.Plan {
	w.Helper()
	changed := &v1alpha1.DynamoGraphDeployment{}
	changed.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeployment))
	changed.Namespace, changed.Name = dgd.Namespace, dgd.Name
	dgd.Spec.DeepCopyInto(&changed.Spec)
	for _, s := range changed.Spec.Services {
		s.ExtraPodSpec.MainContainer.Image = "example.com/engine:" + tag
	}
	text, err := yaml.Marshal(changed)
	if err != nil {
		w.Fatal(err)
	}
	manifest, config := filepath.Join(w.TempDir(), "new.yaml"), filepath.Join(w.TempDir(), "config.yaml")
	head := "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\n"
	if err := errors.Join(os.WriteFile(manifest, text, 0o600), os.WriteFile(config, []byte(head+configuration), 0o600)); err != nil {
		w.Fatal(err)
	}
	command := exec.CommandContext(w.ctx, filepath.Join(binDir, "kubectl-dynamo"), "plan", "-f", manifest, "--config", config, "-o", "json", "--orchestrator", "deployment", "--kubeconfig", cluster.Kubeconfig, "-n", w.namespace)
	command.Stderr = os.Stderr
	said, err := command.Output()
	if ended := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 2) {
		w.Fatalf("plan: %v\n%s", err, said)
	}
	var all struct {
		Plans []plan.Plan `json:"plans"`
	}
	if err := json.Unmarshal(said, &all); err != nil || len(all.Plans) != 1 || len(all.Plans[0].Rollouts) != 1 {
		w.Fatalf("plan: %v\n%s", err, said)
	}
	return all.Plans[0]
}

// foreseen are the writes of a plan: the components that it tells how many replicas to
// have, and those that it deletes, which are in no order.
func foreseen(p plan.Plan) []string {
	name := func(service string, is bool) string {
		if is {
			return graph.GenerationName("chat", service, p.Rollouts[0].Generation)
		}
		return graph.ComponentName("chat", service)
	}
	var all []string
	for _, s := range p.Rollouts[0].Steps {
		if s.Delete {
			for _, service := range []string{"decode", "prefill"} {
				all = append(all, "delete "+name(service, s.New))
			}
			continue
		}
		all = append(all, fmt.Sprintf("%s has %d", name(s.Service, s.New), s.Replicas))
	}
	return all
}

// followComponents notes every change of the replicas of components, as they are stored.
func (w world) followComponents() func() []string {
	w.Helper()
	changes, err := cluster.Client.Watch(w.ctx, &v1alpha1.DynamoComponentDeploymentList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	var all, gone []string
	var done sync.WaitGroup
	done.Go(func() {
		has := map[string]int32{}
		for event := range changes.ResultChan() {
			dcd, is := event.Object.(*v1alpha1.DynamoComponentDeployment)
			if !is {
				return
			}
			was, known := has[dcd.Name]
			has[dcd.Name] = *dcd.Spec.Replicas
			switch {
			case dcd.DeletionTimestamp != nil: // nobody collects it here
				if word := "delete " + dcd.Name; !slices.Contains(gone, word) {
					gone = append(gone, word)
				}
			case !known && dcd.Annotations["test/before"] != "" || known && was == *dcd.Spec.Replicas:
			default:
				all = append(all, fmt.Sprintf("%s has %d", dcd.Name, *dcd.Spec.Replicas))
			}
		}
	})
	return func() []string {
		changes.Stop()
		done.Wait()
		slices.Sort(gone)
		return append(all, gone...)
	}
}

// gpusInLog is the most GPUs that pods held at once, by when they were made and ended.
func (w world) gpusInLog(mark int64, before int, each map[string]int) int {
	w.Helper()
	held, most := before, before
	if err := auditlog.Of(cluster.Kubeconfig).Since(mark, func(e auditlog.Entry) {
		if e.Ref.Namespace != w.namespace || e.Ref.Resource != "pods" || e.Ref.Subresource != "" || e.Status.Code >= 300 {
			return
		}
		for service, gpus := range each {
			if !strings.HasPrefix(e.Ref.Name, "chat-"+service) {
				continue
			}
			switch e.Verb {
			case "create":
				held += gpus
			case "delete":
				held -= gpus
			}
			most = max(most, held)
		}
	}); err != nil {
		w.Fatal(err)
	}
	return most
}

// TestThePlanIsTheDeed: what kubectl dynamo plan says of an image change is what the audit
// log of the API server says was done: which component was written after which, how many
// replicas it was told, and the GPUs at the peak.
func TestThePlanIsTheDeed(t *testing.T) {
	for name, replicas := range map[string]int32{"1D1P": 1, "2D2P": 2, "3D3P": 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.operate(generational)
			w.rollOut()
			w.runPods()
			dgd := w.pair(replicas)
			gpus := map[string]int{"decode": 2, "prefill": 1}
			for service, n := range gpus {
				dgd.Spec.Services[service].Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: fmt.Sprint(n)}}
			}
			w.create(dgd)
			w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
			for _, service := range []string{"decode", "prefill"} {
				dcd := exists(w, &v1alpha1.DynamoComponentDeployment{}, "chat-"+service)
				w.merge(dcd, `{"metadata":{"annotations":{"test/before":"yes"}}}`)
			}
			said := w.plan(dgd, "1.1.0", "rollout: {generations: true}\n")
			stored := w.followComponents()
			mark := w.mark()
			w.image(dgd, "1.1.0")
			done := w.phase("Completed", func(d *v1alpha1.DynamoGraphDeployment) bool {
				return d.Status.Rollout.Target == said.Rollouts[0].Generation
			}).Status.Rollout
			w.eventually("what ran before to be deleted", func(context.Context) error {
				for _, service := range []string{"decode", "prefill"} {
					if get(w, &v1alpha1.DynamoComponentDeployment{}, "chat-"+service).DeletionTimestamp == nil {
						return errors.New(service + " is not")
					}
				}
				return nil
			})

			want := foreseen(said)
			if diff := cmp.Diff(want, stored()); diff != "" {
				t.Errorf("steps (-plan +deed):\n%s", diff)
			}
			var planned, written []string
			for _, step := range want {
				component, _, _ := strings.Cut(strings.TrimPrefix(step, "delete "), " ")
				planned = append(planned, component)
			}
			for _, e := range w.byOperator(mark) {
				if e.Ref.Resource == "dynamocomponentdeployments" && e.Ref.Subresource == "" && e.Status.Code < 300 {
					written = append(written, e.Ref.Name)
				}
			}
			ordered := func(names []string) []string { // of those that are deleted together
				names = slices.Clone(names)
				slices.Sort(names[max(0, len(names)-2):])
				return names
			}
			if diff := cmp.Diff(ordered(planned), ordered(written)); diff != "" || len(written) != said.Rollouts[0].Writes {
				t.Errorf("%d writes were planned (-plan +audit log):\n%s", said.Rollouts[0].Writes, diff)
			}
			if peak := w.gpusInLog(mark, int(replicas)*3, gpus); peak != said.GPUs.PeakLeaving {
				t.Errorf("pods held %d GPUs at once, and %d were planned", peak, said.GPUs.PeakLeaving)
			}
			for service, role := range done.Roles {
				if int(role.Lowest) < said.Rollouts[0].Lowest[service] || int(role.Floor) != said.Rollouts[0].Floor[service] {
					t.Errorf("%s: %+v, planned are %d and a floor of %d", service, role, said.Rollouts[0].Lowest[service], said.Rollouts[0].Floor[service])
				}
			}
			t.Logf("%d steps, %d writes of components, %d GPUs at the peak, as planned", len(said.Rollouts[0].Steps), len(written), said.GPUs.PeakLeaving)
		})
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/scale"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/simulation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

var traces = flag.String("traces", "../../../shared/data/traces", "folder with azure-2023-conversation.csv")

// likened is a graph whose engines and planner are timed by one profile. Its frontend sends
// a request to who has least to do, and a prefill replica computes one prompt at a time, as
// the simulation has it.
const likened = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: likened}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          command: [python3, -m, dynamo.frontend]
          args: [--router-mode, kv, --kv-overlap-score-weight, "0"]
    Planner:
      componentType: planner
      replicas: 1
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          command: [python3, -m, planner_sla]
          args: [--environment=kubernetes, --backend=mocker, --ttft=TTFT, --itl=ITL, --max-gpu-budget=16, --profile-results-dir=/profile]
          volumeMounts: [{name: profile, mountPath: /profile, readOnly: true}]
        volumes: [{name: profile, configMap: {name: profile}}]
    Decode:
      componentType: worker
      subComponentType: decode
      replicas: 1
      resources: {limits: {gpu: "1"}}
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          command: [python3, -m, dynamo.mocker]
          args: [--model-path, Qwen/Qwen3-0.6B, ENGINE]
          volumeMounts: [{name: profile, mountPath: /profile, readOnly: true}]
        volumes: [{name: profile, configMap: {name: profile}}]
    Prefill:
      componentType: worker
      subComponentType: prefill
      replicas: 1
      resources: {limits: {gpu: "1"}}
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:my-tag
          command: [python3, -m, dynamo.mocker]
          args: [--model-path, Qwen/Qwen3-0.6B, --is-prefill-worker, --max-num-seqs, "1", --max-num-batched-tokens, "32768", ENGINE]
          volumeMounts: [{name: profile, mountPath: /profile, readOnly: true}]
        volumes: [{name: profile, configMap: {name: profile}}]
`

// likenedEngine is what both roles are started with: small blocks, so that a sequence holds
// what it has, as many as the profile's cache, and a start that a startup probe sees after
// ten seconds.
const likenedEngine = `--planner-profile-data, /profile, --no-enable-prefix-caching, --block-size, "16", --num-gpu-blocks-override, "65536", --startup-time, "8"`

// tenancy is a pod with GPUs: when it was seen first, ready, and gone.
type tenancy struct {
	gpus            int
	from, ready, to time.Time
}

// followTenancies follows the pods of the namespace that have GPUs, until it is stopped.
func (w world) followTenancies() (stop func() []tenancy) {
	w.Helper()
	events, err := w.cluster.Client.Watch(w.ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	result, stopped := make(chan []tenancy, 1), make(chan struct{})
	go func() {
		all := map[types.UID]*tenancy{}
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			one, now := all[pod.UID], time.Now()
			if one == nil {
				one = &tenancy{from: now}
				for _, c := range pod.Spec.Containers {
					n := c.Resources.Limits["nvidia.com/gpu"]
					one.gpus += int(n.Value())
				}
				all[pod.UID] = one
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && one.ready.IsZero() {
					one.ready = now
				}
			}
			if event.Type == watch.Deleted {
				one.to = now
			}
		}
		select {
		case <-stopped:
		default:
			close(result) // what came after is not known
			return
		}
		var list []tenancy
		for _, one := range all {
			list = append(list, *one)
		}
		result <- list
	}()
	return func() []tenancy {
		w.Helper()
		close(stopped)
		events.Stop()
		list, whole := <-result
		if !whole {
			w.Fatal("the watch of pods ended early")
		}
		return list
	}
}

// gpuHours are those of pods between two moments.
func gpuHours(all []tenancy, from, to time.Time) float64 {
	hours := 0.0
	for _, one := range all {
		begin, end := one.from, to
		if begin.Before(from) {
			begin = from
		}
		if !one.to.IsZero() && one.to.Before(to) {
			end = one.to
		}
		if end.After(begin) {
			hours += float64(one.gpus) * end.Sub(begin).Hours()
		}
	}
	return hours
}

// startup is how long those took on average that began after a moment.
func startup(all []tenancy, after time.Time) (mean time.Duration, starts int) {
	for _, one := range all {
		if one.gpus > 0 && one.from.After(after) && !one.ready.IsZero() {
			mean += one.ready.Sub(one.from)
			starts++
		}
	}
	return mean / time.Duration(max(1, starts)), starts
}

// The most that a cluster and its simulation may differ by.
const (
	likePoints = 3
	likeHours  = 0.05
)

// likeness is what is played on both.
type likeness struct {
	name   string
	trace  trace.Trace
	target capacity.Target // of engines that are not slowed
}

// slower is by how much engines are: requests come as much more rarely, so that a machine
// which is cluster, engines and users at once is not what anybody waits for.
const slower = 12

// silence and warm are seconds at the begin of a trace: in the first nobody asks, so that
// what a planner saw before does not matter, and what comes in the second does not count.
const silence, warm = 30, 60

// likenesses are those of make scaling, at a twelfth of the rate and within minutes.
func likenesses(t *testing.T) []likeness {
	t.Helper()
	chance := rand.New(rand.NewPCG(7, 7))
	const period, rounds = 300, 2
	wave := trace.Sine(5.0/slower, 45.0/slower, period)
	all := []likeness{{
		"a sine of 5 to 45 requests a second of 3000 and 300 tokens, all a twelfth as fast",
		trace.Generate(func(at float64) float64 { return wave(max(0, at-warm)) }, warm+rounds*period, 3000, 300, chance),
		capacity.Target{FirstToken: 0.2, Token: 0.01},
	}}
	whole, err := scale.ReadTrace(filepath.Join(*traces, "azure-2023-conversation.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Logf("the conversation trace is left out: %v", err)
		return all
	}
	if err != nil {
		t.Fatal(err)
	}
	// Of so many minutes every third request, in a third of the time.
	const minutes, part = 30, 3
	conversation := whole.Between(0, 60*minutes).Multiply(1.0/part, 0, chance).Stretch(1.0 / part)
	return append(all, likeness{
		"Azure's conversation trace at 12 times its rate, all a twelfth as fast, and the day three times as fast", conversation,
		capacity.Target{FirstToken: 0.3, Token: 0.012},
	})
}

// figures are what is compared.
type figures struct {
	met, metFirst, metToken float64 // shares
	hours                   float64
}

func (f figures) String() string {
	return fmt.Sprintf("%.1f %% within both targets (%.1f and %.1f), %.3f GPU-hours", 100*f.met, 100*f.metFirst, 100*f.metToken, f.hours)
}

// moments are at how many moments of a tick the simulations of a trace begin to look.
const moments = 20

// simulatedAtAnyMoment is what native gets and takes in the mean, and the fewest and most
// GPU-hours, over the moments at which a planner may look. Which of two looks counts a request
// changes decisions, and what comes of them by some per cent: no moment's figures are those of
// a policy, and a cluster's, whose looks are late by some hundredths of a second, are one of them.
func simulatedAtAnyMoment(s simulation.Setup) (mean figures, least, most float64) {
	for moment := range moments {
		later := s
		shift := simulation.Slot * float64(moment) / moments
		later.Trace, later.Warm = s.Trace.Stretch(1), s.Warm+shift
		for i := range later.Trace {
			later.Trace[i].At += shift
		}
		r := simulation.Run(later, simulation.NewNative(later, nil))
		if moment == 0 {
			least = r.GPUHours
		}
		least, most = min(least, r.GPUHours), max(most, r.GPUHours)
		mean.met += r.Met / moments
		mean.metFirst += r.MetFirst / moments
		mean.metToken += r.MetToken / moments
		mean.hours += r.GPUHours / moments
	}
	return mean, least, most
}

// TestAClusterIsLikeItsSimulation plays a trace on a cluster and in a simulation that is told
// what a user can tell it: the profile, the targets, and how long starts took.
func TestAClusterIsLikeItsSimulation(t *testing.T) {
	if !*scaling {
		t.Skip("make scaling-e2e has the quarter of an hour, and the machine, that it needs")
	}
	for _, l := range likenesses(t) {
		t.Run(strings.Fields(l.name)[1], func(t *testing.T) {
			t.Parallel() // both together take a part of what two cores have
			w := newWorld(t)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
			defer cancel()
			w.ctx = ctx
			target := capacity.Target{FirstToken: slower * l.target.FirstToken, Token: slower * l.target.Token}
			prefill, decode := profiled(t, slowed{capacity.H200(), slower})
			profile, err := capacity.ParseProfile(prefill, decode)
			if err != nil {
				t.Fatal(err)
			}
			model, err := profile.Model()
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": "profile"},
				"data": map[string]string{"prefill_raw_data.json": string(prefill), "decode_raw_data.json": string(decode)},
			})
			if err != nil {
				t.Fatal(err)
			}
			requests := l.trace.Stretch(1)
			for i := range requests {
				requests[i].At += silence
				requests[i].Input = max(8, requests[i].Input) // a chat has a few tokens of its own
			}
			tenancies := w.followTenancies()
			w.applyText(string(data) + "\n---\n" + strings.NewReplacer("ENGINE", likenedEngine,
				"TTFT", fmt.Sprint(1e3*target.FirstToken), "ITL", fmt.Sprint(1e3*target.Token)).Replace(likened))
			url := w.frontendURL(w.ready("likened"))
			w.answers(url)
			w.eventually("a planner that sees the graph", func(ctx context.Context) error {
				all, err := w.decisions(ctx, "likened")
				if err == nil && (len(all) == 0 || all[len(all)-1].Reason != decision.Steady) {
					err = fmt.Errorf("decisions %v", all)
				}
				return err
			})

			begin := time.Now()
			stop, done := w.played(url, "Qwen/Qwen3-0.6B", requests)
			select {
			case <-done:
			case <-w.ctx.Done():
				t.Fatal(w.ctx.Err())
			}
			end := time.Now()
			outcomes, pods := stop(), tenancies()
			const from = silence + warm
			var cluster figures
			counted, late := 0.0, time.Duration(0)
			for _, a := range outcomes {
				late = max(late, a.Sent-a.Planned)
				if a.Planned < from*time.Second {
					continue
				}
				counted++
				first, token := a.first().Seconds() <= target.FirstToken, a.token().Seconds() <= target.Token
				for what, at := range map[*float64]bool{&cluster.metFirst: first, &cluster.metToken: token, &cluster.met: first && token} {
					if at && a.Err == nil {
						*what++
					}
				}
			}
			for _, share := range []*float64{&cluster.met, &cluster.metFirst, &cluster.metToken} {
				*share /= max(1, counted)
			}
			cluster.hours = gpuHours(pods, begin.Add(from*time.Second), end)
			took, starts := startup(pods, begin)

			s := simulation.Setup{
				Trace: requests, Model: model, Target: target, Startup: took.Seconds(), Budget: 16, GPUs: decision.Vector{1, 1},
				Begin: decision.Vector{1, 1}, Warm: from,
			}
			simulated, least, most := simulatedAtAnyMoment(s)
			r := simulation.Run(s, simulation.NewNative(s, nil))
			all, err := w.decisions(w.ctx, "likened")
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range all {
				t.Logf("%.0f s %s", one.At.Sub(begin).Seconds(), strings.Join(one.Words, "\n         "))
			}
			for i := range r.Slots {
				if slot := r.Slots[i]; i > 0 && slot.Wanted != r.Slots[i-1].Wanted {
					t.Logf("simulated: %d s %v", (i+1)*simulation.Slot, slot.Wanted)
				}
			}
			if failed, why := lost(outcomes); failed > 0 {
				t.Errorf("%d of %d requests failed, the first: %v", failed, len(outcomes), why)
			}
			if late > time.Second {
				t.Errorf("the sender was %s late: the machine did something else, and the rest tells of that", late)
			}
			if points := 100 * (cluster.met - simulated.met); points < -likePoints || points > likePoints {
				t.Errorf("the shares are %.1f points apart, at most %d are to be", points, likePoints)
			}
			if apart := cluster.hours/simulated.hours - 1; apart < -likeHours || apart > likeHours {
				t.Errorf("the GPU-hours are %.1f %% apart, at most %.0f are to be", 100*apart, 100*likeHours)
			}
			summary.Line(t, "%s: %d requests, %d starts of %.1f s, the sender at most %s late\n  cluster    %s\n  simulated  %s in the mean, %.3f to %.3f by the moments of looks",
				l.name, len(outcomes), starts, took.Seconds(), late.Round(time.Millisecond), cluster, simulated, least, most)
		})
	}
}

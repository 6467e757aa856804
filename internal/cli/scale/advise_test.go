package scale

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

const disaggregated = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat, annotations: {nvidia.com/gpu-budget: "12"}}
spec:
  services:
    Frontend: {componentType: frontend}
    Prefill: {componentType: worker, subComponentType: prefill, resources: {limits: {gpu: "1"}}}
    Decode: {componentType: worker, subComponentType: decode, resources: {limits: {gpu: "2"}}}
    PLANNER
status:
  services:
    Decode: {componentKind: Deployment, componentName: d, replicas: 1, updatedReplicas: 1, startup: {p50Seconds: 30, p95Seconds: 40, samples: 3}}
`

func consult(t *testing.T, manifest string, arguments ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "graph.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	command := Command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append([]string{"advise", "-f", file}, arguments...))
	err := command.Execute()
	return out.String(), err
}

func TestAdviceIsInWordsThatCanBeWritten(t *testing.T) {
	planner := `Planner: {componentType: planner, extraPodSpec: {mainContainer: {image: x, command: [python3, -m, planner_sla], args: [--ttft=300, --itl=12, --max-gpu-budget=10, --prefill-min-endpoint=2]}}}`
	named := strings.Replace(planner, "--ttft=300", "--ttft=300, --gpu=l40s", 1)
	for _, x := range []struct {
		rule, manifest string
		arguments      []string
		want           []string
	}{
		{"a rate that stays", strings.Replace(disaggregated, "PLANNER", planner, 1), []string{"--trace", "poisson", "--high", "10", "--length", "5m"}, []string{
			"chat: TTFT 300 ms, ITL 12 ms for 97 % of requests, 10 GPUs (1 and 2 a replica), starts of 40s (as seen in 19 of 20 cases), timed by the published profile",
			"Take fixed ", "The rate is never half as much again", "Write: replicas ", " of Prefill and ", " of Decode.", "Take Planner away", "who knows the future",
			"what it costs is not known: it is not said which GPUs replicas have", "GPU-hours (cost unknown).",
		}},
		{"what it costs, by the GPU that the planner is told", strings.Replace(disaggregated, "PLANNER", named, 1), []string{"--trace", "poisson", "--high", "5", "--length", "2m"},
			[]string{"a GPU costs $1.90/h (by the built-in table, for l40s)", "GPU-hours ($", "COST"}},
		{"or at a given price", strings.Replace(disaggregated, "PLANNER", named, 1), []string{"--trace", "poisson", "--high", "5", "--length", "2m", "--price", "7"},
			[]string{"a GPU costs $7.00/h (by what was given)"}},
		{"or by a flag", strings.Replace(disaggregated, "PLANNER", named, 1), []string{"--trace", "poisson", "--high", "5", "--length", "2m", "--gpu", "h100_sxm"},
			[]string{"a GPU costs $4.00/h (by the built-in table, for h100_sxm)"}},
		{"not of replicas that ask for none", strings.NewReplacer("PLANNER", named, `, resources: {limits: {gpu: "1"}}`, "", `, resources: {limits: {gpu: "2"}}`, "").Replace(disaggregated),
			[]string{"--trace", "poisson", "--high", "5", "--length", "2m"},
			[]string{"what it costs is not known: replicas of prefill and decode ask for no GPU", "GPU-hours (cost unknown)."}},
		{"of each role by its own GPU", strings.NewReplacer("PLANNER", "", "subComponentType: decode,", "subComponentType: decode, extraPodSpec: {nodeSelector: {nvidia.com/gpu.product: NVIDIA-L40S}},",
			"subComponentType: prefill,", "subComponentType: prefill, extraPodSpec: {nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}},").Replace(disaggregated),
			[]string{"--trace", "poisson", "--high", "5", "--length", "2m"},
			[]string{"prefill: a GPU costs $5.00/h (by the built-in table, for h200_sxm); decode: a GPU costs $1.90/h (by the built-in table, for l40s)", "GPU-hours ($"}},
		{"a slow wave, without a planner", strings.Replace(disaggregated, "PLANNER", "", 1),
			[]string{"--trace", "sine", "--low", "2", "--high", "20", "--period", "24m", "--length", "24m", "--startup", "20s", "--gpus", "24"}, []string{
				"TTFT 200 ms, ITL 10 ms", "24 GPUs", "starts of 20s (as given)", "Take native, floors ", "there is time to follow them", "Write: a service of componentType planner", "--max-gpu-budget=24",
			}},
		{"a planner whose document is in a pod", strings.Replace(disaggregated, "PLANNER", `Planner: {componentType: planner, extraPodSpec: {mainContainer: {image: x, args: [--config, /etc/planner.yaml]}}}`, 1),
			[]string{"--trace", "poisson", "--high", "5", "--length", "1m"}, []string{"note: Planner: --config /etc/planner.yaml is not there: the defaults count", "TTFT 500 ms"}},
		{"what cannot be reached", strings.Replace(disaggregated, "PLANNER", "", 1), []string{"--trace", "poisson", "--high", "60", "--length", "2m", "--gpus", "3"}, []string{"Nothing reaches 97 % here"}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			out, err := consult(t, x.manifest, x.arguments...)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range x.want {
				if !strings.Contains(out, part) {
					t.Errorf("%q is not in\n%s", part, out)
				}
			}
		})
	}
}

func TestAModelThatIsNamedIsTimedOnWhatTheGraphHas(t *testing.T) {
	const command = `, extraPodSpec: {mainContainer: {image: x, command: [python3, -m, dynamo.sglang]}}}`
	planner := `Planner: {componentType: planner, extraPodSpec: {mainContainer: {image: x, command: [python3, -m, planner_sla], args: [--gpu=l40s]}}}`
	manifest := strings.NewReplacer("PLANNER", planner, `{gpu: "1"}}}`, `{gpu: "1"}}`+command, `{gpu: "2"}}}`, `{gpu: "2"}}`+command).Replace(disaggregated)
	const model = "Qwen/Qwen3-0.6B"
	for _, x := range []struct {
		rule string
		args []string
		want options
	}{
		{"its GPUs, and its engine", nil, options{gpu: "l40s", prefillGPUs: 1, decodeGPUs: 2, backend: "sglang"}},
		{"a flag counts more", []string{"--gpu=h100_sxm", "--prefill-gpus=2", "--decode-gpus=1", "--backend=trtllm"}, options{gpu: "h100_sxm", prefillGPUs: 2, decodeGPUs: 1, backend: "trtllm"}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			x.want.model = model
			want, err := x.want.timing()
			if err != nil {
				t.Fatal(err)
			}
			c := &consultation{options: &options{}}
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			c.flags(flags)
			flags.Duration("startup", 0, "")
			if err := flags.Parse(append([]string{"--model=" + model}, x.args...)); err != nil {
				t.Fatal(err)
			}
			if err := c.read(decode[v1alpha1.DynamoGraphDeployment](t, manifest), flags); err != nil {
				t.Fatal(err)
			}
			times := func(m capacity.Model) []float64 { return []float64{m.Prefill(3000), m.Token(8, 3000), m.Cache()} }
			if diff := cmp.Diff(times(want), times(c.model)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatNoAdviceIsGivenAbout(t *testing.T) {
	whole := strings.Replace(disaggregated, "PLANNER", "", 1)
	for rule, x := range map[string]struct {
		manifest  string
		arguments []string
	}{
		"a graph without prefill":       {strings.ReplaceAll(whole, "subComponentType: prefill", "subComponentType: decode"), []string{"--trace", "sine"}},
		"a file without a graph":        {"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", []string{"--trace", "sine"}},
		"a share of more than all":      {whole, []string{"--trace", "sine", "--share", "2"}},
		"a graph in two places":         {whole, []string{"chat", "--trace", "sine"}},
		"floors above the budget":       {whole, []string{"--trace", "sine", "--gpus", "2"}},
		"a planner that does not start": {strings.Replace(disaggregated, "PLANNER", "Planner: {componentType: planner, extraPodSpec: {mainContainer: {image: x, args: [--nonsense]}}}", 1), []string{"--trace", "sine"}},
	} {
		t.Run(rule, func(t *testing.T) {
			if out, err := consult(t, x.manifest, x.arguments...); err == nil {
				t.Errorf("there was advice:\n%s", out)
			}
		})
	}
}

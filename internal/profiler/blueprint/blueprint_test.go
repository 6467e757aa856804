package blueprint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/validate"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	operatorconfig "github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

func tp(n int) search.Layout {
	return search.Layout{Kind: search.TP, Parallel: perfmodel.Parallel{TP: n, PP: 1, DP: 1, EP: 1}}
}

func dep(n int) search.Layout {
	return search.Layout{Kind: search.DEP, Parallel: perfmodel.Parallel{TP: 1, PP: 1, DP: n, EP: n}}
}

var (
	dense = search.Candidate{
		Mode: config.Disaggregated, GPUs: 8,
		Prefill: &search.Worker{Layout: tp(1), Replicas: 4, CacheTokens: 100_000},
		Decode:  search.Worker{Layout: tp(2), Replicas: 2, Limit: 120, CacheTokens: 400_000},
	}
	mixture = search.Candidate{
		Mode: config.Disaggregated, GPUs: 24,
		Prefill: &search.Worker{Layout: search.Layout{Kind: search.TEP, Parallel: perfmodel.Parallel{TP: 8, PP: 1, DP: 1, EP: 8}}, Replicas: 1, CacheTokens: 500_000},
		Decode:  search.Worker{Layout: dep(16), Replicas: 1, Limit: 1024, CacheTokens: 6_400_000},
	}
	staged = search.Candidate{
		Mode: config.Aggregated, GPUs: 8,
		Decode: search.Worker{Layout: search.Layout{Kind: search.TP, Parallel: perfmodel.Parallel{TP: 4, PP: 2, DP: 1, EP: 1}}, Replicas: 1, Limit: 64, CacheTokens: 800_000},
	}
)

func options(change func(*Options)) Options {
	o := Options{
		Name: "goal", Backend: config.VLLM, Model: "Qwen/Qwen3-32B", Image: "runtime:1", PerNode: 8,
		Goal: config.SLA{TTFT: 200, ITL: 20}, ProfileData: "goal-profile-data",
	}
	change(&o)
	return o
}

func TestGraphs(t *testing.T) {
	for name, test := range map[string]struct {
		candidate search.Candidate
		options   Options
	}{
		"vllm-dense":   {dense, options(func(*Options) {})},
		"vllm-mixture": {mixture, options(func(o *Options) { o.Model = "Qwen/Qwen3-235B-A22B" })},
		"vllm-staged":  {staged, options(func(o *Options) { o.MaxContext = 16384 })},
		"vllm-cached-model": {dense, options(func(o *Options) {
			o.Cache = config.ModelCache{PVCName: "models", PVCPath: "qwen", MountPath: "/opt/model-cache"}
		})},
		"sglang-mixture": {mixture, options(func(o *Options) { o.Backend = config.SGLang })},
		"sglang-staged":  {staged, options(func(o *Options) { o.Backend = config.SGLang })},
		"trtllm-dense":   {dense, options(func(o *Options) { o.Backend = config.TRTLLM; o.Planner = map[string]string{"enabled": "false"} })},
		"trtllm-mixture": {mixture, options(func(o *Options) { o.Backend, o.Budget = config.TRTLLM, 32 })},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Graph(test.candidate, test.options)
			if err != nil {
				t.Fatal(err)
			}
			mock := Mocker(test.candidate, test.options)
			both := manifest(t, g) + "---\n" + manifest(t, mock)
			golden.Text(t, "testdata/"+name+".yaml", both)
			if total := gpus(g); total != test.candidate.GPUs {
				t.Errorf("the graph asks for %d GPUs, the candidate for %d", total, test.candidate.GPUs)
			}
			if total := gpus(mock); total != 0 {
				t.Errorf("mock engines ask for %d GPUs", total)
			}
		})
	}
}

// manifest is a graph's YAML, which the rules of the cluster must admit.
func manifest(t *testing.T, g *v1alpha1.DynamoGraphDeployment) string {
	t.Helper()
	text, err := Options{}.YAML(g)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := input.Parse("graph", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		verdict, err := validate.Judge(d, operatorconfig.Default().Rules())
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range verdict.Problems {
			t.Errorf("not admitted: %v\n%s", problem, text)
		}
	}
	return text
}

func gpus(g *v1alpha1.DynamoGraphDeployment) int {
	total := 0
	for _, s := range g.Spec.SortedServices() {
		if s.Resources == nil || s.Resources.Limits == nil {
			continue
		}
		n, nodes := int(s.Resources.Limits.GPU[0]-'0'), 1
		if s.Multinode != nil {
			nodes = int(s.Multinode.NodeCount)
		}
		total += n * nodes * int(*s.Replicas)
	}
	return total
}

const usersGraph = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: mine, labels: {team: a}}
spec:
  envs: [{name: KEEP, value: "1"}]
  services:
    Web: {componentType: frontend, replicas: 3, extraPodSpec: {mainContainer: {image: web:1}}}
    Extra: {componentType: default, replicas: 1}
    Planner: {componentType: planner, replicas: 1}
    One:
      componentType: worker
      subComponentType: prefill
      resources: {limits: {gpu: "8", custom: {rdma/ib: "8"}}, requests: {gpu: "8", cpu: "4"}}
      extraPodSpec:
        mainContainer:
          image: mine:1
          command: [/bin/sh, -c]
          args: ["export A=b && exec python3 -m dynamo.vllm --model $MODEL -tp 8 --is-prefill-worker --block-size 128 2>&1 | tee /log"]
    Two:
      componentType: worker
      subComponentType: decode
      multinode: {nodeCount: 2}
      extraPodSpec:
        mainContainer: {image: mine:1, command: [python3], args: [-m, dynamo.vllm, --model=old, --tensor_parallel_size, "16", --enable-expert-parallel]}
`

func TestAUsersGraphKeepsWhatIsItsOwn(t *testing.T) {
	base, err := Parse([]byte(usersGraph))
	if err != nil {
		t.Fatal(err)
	}
	o := options(func(o *Options) { o.Base, o.Image = base, "" })
	g, err := Graph(dense, o)
	if err != nil {
		t.Fatal(err)
	}
	manifest(t, g)
	one, two := g.Spec.Services["One"], g.Spec.Services["Two"]
	for name, test := range map[string]struct{ got, want any }{
		"the name is the request's": {g.Name, "goal"},
		"labels stay":               {g.Labels, map[string]string{"team": "a"}},
		"other services stay":       {*g.Spec.Services["Web"].Replicas, int32(3)},
		"images stay":               {one.ExtraPodSpec.MainContainer.Image, "mine:1"},
		"a string for a shell stays one": {one.ExtraPodSpec.MainContainer.Args, []string{
			"export A=b && exec python3 -m dynamo.vllm --model Qwen/Qwen3-32B --tensor-parallel-size 1 --is-prefill-worker --block-size 128 2>&1 | tee /log",
		}},
		"arguments are replaced where they stand": {two.ExtraPodSpec.MainContainer.Args, []string{
			"-m", "dynamo.vllm", "--model", "Qwen/Qwen3-32B", "--tensor-parallel-size", "2", "--max-num-seqs", "120",
		}},
		"GPUs follow the layout, in requests too": {[]string{one.Resources.Limits.GPU, one.Resources.Requests.GPU, one.Resources.Limits.Custom["rdma/ib"]}, []string{"1", "1", "1"}},
		"one node is enough now":                  {two.Multinode, (*v1alpha1.Multinode)(nil)},
		"the planner is ours":                     {strings.Join(g.Spec.Services["Planner"].ExtraPodSpec.MainContainer.Command, " "), "python3 -m dynamo.planner.planner_sla"},
		"the planner runs the frontend's image":   {g.Spec.Services["Planner"].ExtraPodSpec.MainContainer.Image, "web:1"},
		"the user's graph is not changed":         {base.Spec.Services["Two"].Multinode.NodeCount, int32(2)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestModesOfAUsersGraph(t *testing.T) {
	disaggregated, err := Parse([]byte(usersGraph))
	if err != nil {
		t.Fatal(err)
	}
	modes, err := Options{Base: disaggregated}.Modes(nil)
	if diff := cmp.Diff([]config.Mode{config.Disaggregated}, modes); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := (Options{Base: disaggregated}).Modes([]config.Mode{config.Aggregated}); err == nil {
		t.Error("a disaggregated graph is searched as an aggregated one")
	}
	if _, err := (Options{Base: &v1alpha1.DynamoGraphDeployment{}}).Modes(nil); err == nil {
		t.Error("a graph without workers is taken")
	}
}

func TestATrialIsOneEngineOfEachKind(t *testing.T) {
	g, err := Trial(dense, options(func(*Options) {}))
	if err != nil {
		t.Fatal(err)
	}
	if _, planned := g.Spec.Services["Planner"]; planned || gpus(g) != 3 {
		t.Errorf("%d GPUs", gpus(g))
	}
	if dense.Prefill.Replicas != 4 {
		t.Error("the candidate was changed")
	}
}

func TestLine(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		edit func(*line)
		want []string
	}{
		"a missing flag is added":               {[]string{"--a", "1"}, func(l *line) { l.set("2", "--b") }, []string{"--a", "1", "--b", "2"}},
		"an alias is replaced by the name":      {[]string{"-tp", "4", "--x"}, func(l *line) { l.set("2", "--tensor", "-tp") }, []string{"--tensor", "2", "--x"}},
		"repetitions go":                        {[]string{"--a=1", "--b", "--a", "3"}, func(l *line) { l.set("2", "--a") }, []string{"--a", "2", "--b"}},
		"a switch does not take the next word":  {[]string{"--on", "word"}, func(l *line) { l.toggle(false, "--on") }, []string{"word"}},
		"a negative number is a value":          {[]string{"--n", "-1", "--m"}, func(l *line) { l.drop(true, "--n") }, []string{"--m"}},
		"words before the module are not flags": {[]string{"-m", "dynamo.vllm", "--a", "1"}, func(l *line) { l.drop(true, "-m") }, []string{"-m", "dynamo.vllm", "--a", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &corev1.Container{Args: test.args}
			l := openLine(c)
			test.edit(l)
			l.close()
			if diff := cmp.Diff(test.want, c.Args); diff != "" {
				t.Error(diff)
			}
		})
	}
}

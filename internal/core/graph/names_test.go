package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	cases := map[string]struct{ got, want string }{
		"a service name is lower-cased in object names": {
			ComponentName("vllm-disagg", "VllmDecodeWorker"), "vllm-disagg-vllmdecodeworker"},
		"a Service knows no dots": {
			ServiceName("qwen3.5", "Frontend"), "qwen3-5-frontend"},
		"the Dynamo namespace joins namespace and graph": {
			DynamoNamespace("lab", "chat", false), "lab-chat"},
		"a global component lives in the shared Dynamo namespace": {
			DynamoNamespace("lab", "chat", true), "dynamo"},
		"the model hash is the start of its SHA-256": {
			ModelHash("Qwen/Qwen3-0.6B"), "fb68f5a6"},
		"a model Service is named after the hash": {
			ModelService("Qwen/Qwen3-0.6B"), "dynamo-model-fb68f5a6"},
		"the discovery account may be longer than a label": {
			DiscoveryAccount(long), long + "-k8s-service-discovery"},
		"a LeaderWorkerSet of fifty characters keeps its name": {
			GroupName(long[:48], 3), long[:48] + "-3"},
		"a longer one is cut and told apart by a digest of the whole": {
			GroupName(long[:49], 3), long[:39] + "-" + digest(long[:49]) + "-3"},
		"its number counts": {
			GroupName(long[:48], 10), long[:38] + "-" + digest(long[:48]) + "-10"},
		"a PodCliqueSet's name is cut as later versions of the original cut it": {
			cliqueSet("kimi-k25-agg-specdec", 17), "kimi-k25-agg-367a"},
		"a hyphen at the cut stays, as there": {
			cliqueSet("qwen38max-sgl-disagg", 15), "qwen38max--d2ec"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("got %q, want %q", c.got, c.want)
			}
		})
	}
}

func TestTooLongNamesAreShortenedWithoutCollision(t *testing.T) {
	stem := strings.Repeat("graph", 14)
	a, b := ComponentName(stem, "decode"), ComponentName(stem, "decode2")
	if len(a) > maxLabel || len(b) > maxLabel {
		t.Errorf("names are longer than a label: %q, %q", a, b)
	}
	if a == b {
		t.Errorf("two services share the name %q", a)
	}
	if a != ComponentName(stem, "decode") {
		t.Error("a shortened name is not stable")
	}
}

// TestEveryNameThatIsAdmittedLeavesRoomForSuffixes tries all lengths: a
// LeaderWorkerSet's workers need eleven characters and two, Grove wants no more
// than 45 in the names of a set, a group and a clique, and names that fit stay.
func TestEveryNameThatIsAdmittedLeavesRoomForSuffixes(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"
	for i := 1; i <= maxLabel; i++ {
		for j := 1; j <= maxLabel; j++ {
			for _, nodes := range []int32{1, 2} {
				dgd := &v1alpha1.DynamoGraphDeployment{}
				dgd.Namespace, dgd.Name = "lab", letters[:i]
				wide := &v1alpha1.SharedSpec{Multinode: &v1alpha1.Multinode{NodeCount: nodes}}
				dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{letters[:j]: wide, "B" + letters[:j-1]: {}}
				g, err := FromGraphDeployment(dgd, Defaults{})
				if err != nil {
					t.Fatal(err)
				}
				seen, untouched := map[string]bool{}, true
				for _, c := range g.Components {
					if name := GroupName(c.ObjectName, 999); len(name)+len("-0-4294967295") > maxLabel {
						t.Errorf("LeaderWorkerSet %s has %d characters", name, len(name))
					}
					if sum := len(g.CliqueSet) + c.cliqueNames(); sum > maxCliqueNames || c.Clique == "" || seen[c.Clique] {
						t.Errorf("set %q, clique %q: %d characters", g.CliqueSet, c.Clique, sum)
					}
					seen[c.Clique] = true
					untouched = untouched && strings.EqualFold(c.Clique, c.Name) && c.CliqueSet == dgd.Name
				}
				g.Components = slices.DeleteFunc(g.Components, func(c Component) bool { return c.Name != letters[:j] })
				g.Components[0].Role = RoleDecode
				set := g.GenerationSet("0123abcd")
				if sum := len(set) + g.Components[0].cliqueNames(); set != "" && (sum > maxCliqueNames || !strings.HasSuffix(set, "-0123abcd")) {
					t.Errorf("set %q, clique %q: %d characters", set, g.Components[0].Clique, sum)
				}
				if fits := g.Components[0].cliqueNames() <= maxCliqueNames-minCliqueSet-len("-0123abcd"); fits != (set != "") {
					t.Errorf("graph of %d, service of %d characters, %d nodes: fits %v, set %q", i, j, nodes, fits, set)
				}
				need := j
				if nodes > 1 {
					need = 2*j + len(leaderSuffix)
				}
				if fits := i+need <= maxCliqueNames; fits != untouched {
					t.Errorf("graph of %d, service of %d characters, %d nodes: fits %v, kept %v", i, j, nodes, fits, untouched)
				}
			}
		}
	}
}

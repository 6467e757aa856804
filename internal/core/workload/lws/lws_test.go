package lws

import (
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// kubelet expands references as it does in a container's command: a name ends at
// the first parenthesis, and one that is not known stays.
func kubelet(text string, vars map[string]string) string {
	return regexp.MustCompile(`\$\$|\$\(([^)]*)\)`).ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, known := vars[strings.TrimSuffix(strings.TrimPrefix(found, "$("), ")")]; known {
			return value
		}
		return found
	})
}

// TestAWorkerFindsItsPlace: what the set's controller tells a container by variables
// gets into its command line under both contracts, by the kubelet and the shell.
func TestAWorkerFindsItsPlace(t *testing.T) {
	vars := map[string]string{"LWS_WORKER_INDEX": "2", "LWS_LEADER_ADDRESS": "g-0.g.ns"}
	for _, contract := range []graph.Contract{graph.ContractSeed, graph.ContractV1} {
		c := graph.Component{}
		c.Contract, c.Nodes = contract, 3
		a := place(c, engine.Worker).Addresses
		for rule, c := range map[string]struct{ text, want string }{
			"the leader":                 {a.Leader(true), "g-0.g.ns"},
			"its rank":                   {a.Rank, "2"},
			"the first rank that it has": {a.RankTimes(4), "8"},
		} {
			var words []*syntax.Word
			for word, err := range syntax.NewParser().WordsSeq(strings.NewReader(kubelet(c.text, vars))) {
				if err != nil {
					t.Fatalf("%s under %s: %q: %v", rule, contract, c.text, err)
				}
				words = append(words, word)
			}
			shell := &expand.Config{Env: expand.FuncEnviron(func(name string) string { return vars[name] })}
			got, err := expand.Fields(shell, words...)
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%s under %s: %q became %q, want %q: %v", rule, contract, c.text, got, c.want, err)
			}
		}
	}
}

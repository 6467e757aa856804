package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Runtime is which contract the runtime in the images of graphs is started by. The
// contract of a graph that runs changes only with what it was chosen by.
type Runtime struct {
	// Contract is auto, seed or 1.x.
	Contract graph.Contract `json:"contract,omitempty"`
	// UnknownTags is the contract of graphs whose image tags do not tell: seed or
	// 1.x.
	UnknownTags graph.Contract `json:"unknownTags,omitempty"`
}

// contractAuto goes by the graph.
const contractAuto graph.Contract = "auto"

func (r Runtime) validate(at *field.Path) field.ErrorList {
	return append(oneOf(at.Child("contract"), r.Contract, contractAuto, graph.ContractSeed, graph.ContractV1),
		oneOf(at.Child("unknownTags"), r.UnknownTags, graph.ContractSeed, graph.ContractV1)...)
}

func (r Runtime) rules() graph.ContractRules {
	rules := graph.ContractRules{UnknownTags: r.UnknownTags}
	if r.Contract != contractAuto {
		rules.Forced = r.Contract
	}
	return rules
}

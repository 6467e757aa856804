package attack

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// requestPolicy keeps requests from having graphs made where their author could
// not.
const requestPolicy = "dynamo-operator-request-namespace"

// requestOf asks for a graph that is found by estimation, within seconds. The
// name is the graph's as well.
func requestOf(ns, name, more string) *unstructured.Unstructured {
	return ofOurs("DynamoGraphDeploymentRequest", ns, name, `{model: Qwen/Qwen3-0.6B, backend: vllm, autoApply: true`+more+`, profilingConfig: {profilerImage: "dynamo-profiler:dev",
		config: {sla: {isl: 1000, osl: 50, ttft: 1000, itl: 50}, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}, hardware: {numGpusPerNode: 8, maxNumGpusPerEngine: 1}}}}`)
}

func elsewhereIn(target string) string { return `, deploymentOverrides: {namespace: ` + target + `}` }

func requestFor(ns, target string) *unstructured.Unstructured {
	return requestOf(ns, "r", elsewhereIn(target))
}

var _ = add(
	attack{
		name: "a request has a graph made where its author may not", finding: "S1",
		heldBy: []barrier{policy(requestPolicy), code(requestplan.GuardConsent), code(requestplan.GuardPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			if err := s.tenant(ns, "edit").Create(s.ctx, requestFor(ns, victim)); err != nil {
				return s.refused(err)
			}
			s.eventually("the graph", s.graphIn(victim, "r"))
			return gotThrough("there is a graph in %s", victim)
		},
	},
	attack{
		name: "a request has a graph made where its author may not while nobody judges who asks", finding: "S1", unbound: true,
		heldBy: []barrier{code(requestplan.GuardPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			s.grants(victim, ns, "edit") // the target agrees to requests, and trusts the policy to judge whose
			mallory := s.tenant(ns, "edit")
			s.eventually("the request to be accepted", func(ctx context.Context) error {
				return mallory.Create(ctx, requestFor(ns, victim))
			})
			return s.goesTo(ns, victim, "r", s.says(ns, "r", v1alpha1.ConditionValidation, v1alpha1.ReasonPolicyNotInForce))
		},
	},
	attack{
		name: "an editor leads somebody else's request for another namespace to another image", finding: "S1", heldBy: []barrier{policy(requestPolicy)},
		try: func(s *scene) outcome {
			victim, ns := s.namespace(nil), s.namespace(nil)
			theirs := requestFor(ns, victim)
			s.create(theirs)
			return s.refused(s.tenant(ns, "edit").Patch(s.ctx, theirs, merge(`{"spec":{"deploymentOverrides":{"workersImage":"evil"}}}`)))
		},
	},
	attack{
		name: "a request has a graph made in a namespace of the system while no webhook answers", finding: "S1", webhooksDown: true,
		heldBy: []barrier{policy(requestPolicy), code(validation.GuardReserved), code(requestplan.GuardPolicy)},
		try:    func(s *scene) outcome { return s.intoReserved("kube-system") },
	},
)

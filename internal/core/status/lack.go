package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
)

// lack is what a service misses; nothing if its message is empty.
type lack struct {
	service, reason, message string
}

// justStarting are the reasons of services that time will make ready.
var justStarting = []string{
	"", v1alpha1.ReasonServicesNotReady, v1alpha1.ReasonDeploymentNotReady, v1alpha1.ReasonSomeLeaderWorkerSetsNotReady,
}

// weight orders lacks: what keeps anything from being made, then what ails pods,
// in the order of a pod's life, then what only takes time.
func (l lack) weight() int {
	switch {
	case slices.Contains(justStarting, l.reason):
		return len(diagnosis.Reasons()) + 1
	case slices.Contains(diagnosis.Reasons(), diagnosis.Reason(l.reason)):
		return 1 + slices.Index(diagnosis.Reasons(), diagnosis.Reason(l.reason))
	case l.reason == v1alpha1.ReasonRolloutStuck:
		return len(diagnosis.Reasons())
	default:
		return 0
	}
}

// unready is the verdict on a graph whose services lack something: the first
// cause that a person can act on and, by name, who else waits. While there is
// none, what each service waits for.
func unready(lacks []lack) condition {
	slices.SortStableFunc(lacks, func(a, b lack) int { return cmp.Compare(a.weight(), b.weight()) })
	first := lacks[0]
	if slices.Contains(justStarting, first.reason) {
		var all []string
		for _, l := range lacks {
			all = append(all, fmt.Sprintf("%s: %s", l.service, l.message))
		}
		return condition{false, v1alpha1.ReasonServicesNotReady, strings.Join(all, "; ")}
	}
	message := fmt.Sprintf("%s: %s", first.service, first.message)
	var others []string
	for _, l := range lacks[1:] {
		others = append(others, l.service)
	}
	if len(others) > 0 {
		slices.Sort(others)
		message += "; also not ready: " + strings.Join(others, ", ")
	}
	return condition{false, first.reason, message}
}

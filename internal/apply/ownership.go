package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// manager is the name under which an owner's wishes are recorded. Owners of a
// joint object have one each, so that none takes away what another wants. So have
// requests: on the graph that one makes, its own controller notes decisions.
func manager(owner graph.Object, tie graph.Tie) string {
	switch tie {
	case graph.Joint:
		return FieldManager + "-" + string(owner.GetUID())
	case graph.Labelled:
		return FieldManager + "-request"
	default:
		return FieldManager
	}
}

// claim decides whether a live object is ours to write. One that belongs to
// somebody else and has a name that we need is a conflict; one that serves the
// whole namespace and was brought by somebody else is left as it is.
func claim(owner, live graph.Object, how graph.Tie, id identity) (mine bool, err error) {
	switch how {
	case graph.Loose:
		return live.GetLabels()["app.kubernetes.io/managed-by"] == FieldManager, nil
	case graph.Joint:
		mine = live.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy
	case graph.Labelled:
		mine = graph.OfRequest(live, owner)
	default:
		mine = metav1.IsControlledBy(live, owner)
	}
	if mine {
		return true, nil
	}
	if how == graph.Labelled {
		return false, fault.New(fault.Conflict, v1alpha1.ReasonNameConflict,
			"%s exists and is not of this request; remove it, or choose another name", id)
	}
	by := "nobody"
	if ref := metav1.GetControllerOf(live); ref != nil {
		by = ref.Kind + " " + ref.Name
	}
	return false, fault.New(fault.Conflict, v1alpha1.ReasonNameConflict,
		"%s exists and is controlled by %s; rename the service or remove that object", id, by)
}

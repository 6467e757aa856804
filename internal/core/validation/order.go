package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// startOrder checks which services are started after which: all of them exist, and
// none waits for itself in the end.
func startOrder(dgd *v1alpha1.DynamoGraphDeployment, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	after := map[string][]string{}
	place := func(service string) *field.Path {
		return at.Key(service).Child("annotations").Key(v1alpha1.AnnotationStartAfter)
	}
	for name, s := range dgd.Spec.SortedServices() {
		names := graph.StartAfter(s.Annotations)
		for i, before := range names {
			_, known := dgd.Spec.Services[before]
			switch {
			case before == "":
				errs = append(errs, field.Invalid(place(name), s.Annotations[v1alpha1.AnnotationStartAfter], "has an empty name between commas"))
			case slices.Contains(names[:i], before):
				errs = append(errs, field.Duplicate(place(name), before))
			case !known:
				errs = append(errs, field.NotFound(place(name), before))
			case before == name:
				errs = append(errs, field.Invalid(place(name), before, "a service cannot wait for itself"))
			default:
				after[name] = append(after[name], before)
			}
		}
	}
	for name := range dgd.Spec.SortedServices() {
		if circle := circleOf(name, after); len(circle) > 0 && circle[0] == slices.Min(circle) {
			errs = append(errs, field.Invalid(place(name), strings.Join(after[name], ","),
				fmt.Sprintf("services wait for each other: %s after %s", strings.Join(circle, " after "), name)))
		}
	}
	return errs
}

// circleOf is a way from a service through those that it waits for back to itself,
// a shortest one; nil if there is none.
func circleOf(name string, after map[string][]string) []string {
	ways, seen := [][]string{{name}}, map[string]bool{}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range after[way[len(way)-1]] {
			if next == name {
				return way
			}
			if !seen[next] {
				seen[next] = true
				ways = append(ways, append(slices.Clone(way), next))
			}
		}
	}
	return nil
}

package validation

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// objectName checks the name of a graph or a component: it is the value of a
// label and, with hyphens for dots, the beginning of the names of Services. One that
// the server will make up is not looked at.
func objectName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	return label(strings.ReplaceAll(name, ".", "-"), at, "as a label and in names of Services ")
}

// label checks a name that has to be a DNS label.
func label(name string, at *field.Path, where string) field.ErrorList {
	return invalid(at, name, where, validation.IsDNS1123Label(name))
}

// invalid turns what a library finds wrong with a value into violations; where says
// what it is used as.
func invalid(at *field.Path, value, where string, problems []string) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range problems {
		errs = append(errs, field.Invalid(at, value, where+problem))
	}
	return errs
}

// serviceNames checks the services' keys: they become label values as they
// stand and, in lower case, part of object names.
func serviceNames(dgd *v1alpha1.DynamoGraphDeployment, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	taken := map[string]string{}
	for name := range dgd.Spec.SortedServices() {
		lower := strings.ToLower(name)
		if first, seen := taken[lower]; seen {
			errs = append(errs, field.Duplicate(at.Key(name), "differs from service "+first+" only in case; both would have the same objects"))
			continue
		}
		taken[lower] = name
		errs = append(errs, invalid(at.Key(name), name, "in lower case ", validation.IsDNS1123Label(lower))...)
	}
	for name := range dgd.Spec.SortedServices() {
		stem := strings.ToLower(numbered.ReplaceAllString(name, ""))
		group, found := taken[stem]
		if !found || group == name {
			continue
		}
		if m := dgd.Spec.Services[group]; m != nil && m.Multinode != nil {
			errs = append(errs, field.Duplicate(at.Key(name), "has the name of a group of nodes of service "+group))
		}
	}
	return errs
}

// numbered is the end of the name that one replica of several nodes has.
var numbered = regexp.MustCompile(`-\d+$`)

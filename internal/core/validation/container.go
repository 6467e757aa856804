package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

func environment(envs []corev1.EnvVar, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, v := range envs {
		name := at.Index(i).Child("name")
		if v.Name == "" {
			errs = append(errs, field.Required(name, ""))
			continue
		}
		errs = append(errs, invalid(name, v.Name, "", validation.IsRelaxedEnvVarName(v.Name))...)
		if v.Value != "" && v.ValueFrom != nil {
			errs = append(errs, field.Forbidden(at.Index(i).Child("valueFrom"), "a variable has a value or a source, not both"))
		}
	}
	return errs
}

// containers checks the names of containers that stand beside the main one. What
// they may do on the node is for Pod Security to say, not for us.
func containers(extra *v1alpha1.ExtraPodSpec, at *field.Path) field.ErrorList {
	if extra == nil {
		return nil
	}
	var errs field.ErrorList
	main := "main"
	if c := extra.MainContainer; c != nil {
		if c.Name != "" {
			main = c.Name
			errs = append(errs, label(c.Name, at.Child("mainContainer", "name"), "")...)
		}
		errs = append(errs, environment(c.Env, at.Child("mainContainer", "env"))...)
	}
	if extra.PodSpec == nil {
		return errs
	}
	taken := map[string]bool{}
	check := func(list []corev1.Container, at *field.Path) {
		for i, c := range list {
			name := at.Index(i).Child("name")
			switch {
			case c.Name == "":
				errs = append(errs, field.Required(name, ""))
			case c.Name == main:
				errs = append(errs, field.Forbidden(name, "the main container has this name; what it is given belongs into mainContainer"))
			case taken[c.Name]:
				errs = append(errs, field.Duplicate(name, c.Name))
			default:
				errs = append(errs, label(c.Name, name, "")...)
			}
			taken[c.Name] = true
		}
	}
	check(extra.InitContainers, at.Child("initContainers"))
	check(extra.Containers, at.Child("containers"))
	return errs
}

// frontendSidecars checks the references of a graph's components. Only v1beta1 has
// them: in v1alpha1 the sidecar stands where it is named.
func frontendSidecars(dgd *v1alpha1.DynamoGraphDeployment, at *field.Path) field.ErrorList {
	if !conversion.MeansBeta(dgd) {
		return nil
	}
	var errs field.ErrorList
	beta, _ := conversion.GraphToBeta(dgd)
	for i := range beta.Spec.Components {
		c := &beta.Spec.Components[i]
		errs = append(errs, frontendSidecar(c, at.Key(c.Name))...)
	}
	return errs
}

func componentSidecar(dcd *v1alpha1.DynamoComponentDeployment, at *field.Path) field.ErrorList {
	if !conversion.MeansBeta(dcd) {
		return nil
	}
	beta, _ := conversion.ComponentToBeta(dcd)
	return frontendSidecar(&beta.Spec.Component, at)
}

func frontendSidecar(c *v1beta1.Component, at *field.Path) field.ErrorList {
	if c.FrontendSidecar == "" {
		return nil
	}
	var names []string
	if c.PodTemplate != nil {
		for _, container := range c.PodTemplate.Spec.Containers {
			if container.Name != v1beta1.MainContainer {
				names = append(names, container.Name)
			}
		}
	}
	if slices.Contains(names, c.FrontendSidecar) {
		return nil
	}
	why := "names no container of the pod template beside main; "
	slices.Sort(names)
	if len(names) > 0 {
		why += "those are: " + strings.Join(names, ", ")
	} else {
		why += "there is none"
	}
	return field.ErrorList{field.Invalid(at.Child("frontendSidecar"), c.FrontendSidecar, why)}
}

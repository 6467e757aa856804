package validation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
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

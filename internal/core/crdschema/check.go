package crdschema

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Check finds everything that the schema does not allow, by path: fields that
// it does not know, that have another type, or whose value is out of bounds.
func (s Schema) Check(object map[string]any) field.ErrorList {
	return checkObject(object, s.root, nil)
}

func check(value any, s *schema.Structural, at *field.Path) field.ErrorList {
	if value == nil {
		return nil // dropped or kept as unset, but never wrong
	}
	if problem := wrongType(value, s); problem != "" {
		return field.ErrorList{field.Invalid(at, value, problem)}
	}
	errs := checkBounds(value, s.ValueValidation, at)
	switch value := value.(type) {
	case map[string]any:
		errs = append(errs, checkObject(value, s, at)...)
	case []any:
		for i, item := range value {
			if s.Items != nil {
				errs = append(errs, check(item, s.Items, at.Index(i))...)
			}
		}
	}
	return errs
}

func checkObject(object map[string]any, s *schema.Structural, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(object)) {
		property, named := s.Properties[name]
		switch {
		case at == nil && isMeta(name):
		case named:
			errs = append(errs, check(object[name], &property, at.Child(name))...)
		case s.AdditionalProperties != nil:
			if below := s.AdditionalProperties.Structural; below != nil {
				errs = append(errs, check(object[name], below, at.Key(name))...)
			}
		case !s.XPreserveUnknownFields:
			errs = append(errs, field.Forbidden(at.Child(name), unknown(name, s)))
		}
	}
	if s.ValueValidation == nil {
		return errs
	}
	for _, name := range s.ValueValidation.Required {
		if object[name] == nil && s.Properties[name].Default.Object == nil {
			errs = append(errs, field.Required(at.Child(name), ""))
		}
	}
	return errs
}

// isMeta names the fields that every object has and no definition describes.
func isMeta(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// unknown names a field that the user may have meant.
func unknown(name string, s *schema.Structural) string {
	for _, known := range slices.Sorted(maps.Keys(s.Properties)) {
		if strings.EqualFold(known, name) || strings.EqualFold(known, name+"s") || strings.EqualFold(known+"s", name) {
			return fmt.Sprintf("unknown field; did you mean %s?", known)
		}
	}
	return "unknown field"
}

func wrongType(value any, s *schema.Structural) string {
	var ok bool
	switch v := value.(type) {
	case string:
		ok = s.Type == "string" || s.XIntOrString
	case bool:
		ok = s.Type == "boolean"
	case int64:
		ok = s.Type == "integer" || s.Type == "number" || s.XIntOrString
	case float64:
		ok = s.Type == "number" || (v == math.Trunc(v) && (s.Type == "integer" || s.XIntOrString))
	case map[string]any:
		ok = s.Type == "object"
	case []any:
		ok = s.Type == "array"
	}
	switch {
	case ok, s.Type == "" && s.XPreserveUnknownFields:
		return ""
	case s.XIntOrString:
		return "must be a number or a string"
	default:
		return fmt.Sprintf("must be of type %s", s.Type)
	}
}

func checkBounds(value any, v *schema.ValueValidation, at *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	var errs field.ErrorList
	bad := func(problem string, args ...any) {
		errs = append(errs, field.Invalid(at, value, fmt.Sprintf(problem, args...)))
	}
	if len(v.Enum) > 0 && !slices.ContainsFunc(v.Enum, func(e schema.JSON) bool { return e.Object == value }) {
		var choices []string
		for _, choice := range v.Enum {
			choices = append(choices, fmt.Sprint(choice.Object))
		}
		errs = append(errs, field.NotSupported(at, value, choices))
	}
	switch value := value.(type) {
	case string:
		length := int64(utf8.RuneCountInString(value))
		if v.MinLength != nil && length < *v.MinLength {
			errs = append(errs, field.Required(at, fmt.Sprintf("must have at least %d characters", *v.MinLength)))
		}
		if v.MaxLength != nil && length > *v.MaxLength {
			bad("must have at most %d characters", *v.MaxLength)
		}
		if v.Pattern != "" && !matches(v.Pattern, value) {
			bad("does not have the form %s", v.Pattern)
		}
	case int64:
		errs = append(errs, checkNumber(float64(value), v, at)...)
	case float64:
		errs = append(errs, checkNumber(value, v, at)...)
	case []any:
		if n := int64(len(value)); v.MaxItems != nil && n > *v.MaxItems {
			errs = append(errs, field.TooMany(at, len(value), int(*v.MaxItems)))
		}
	}
	return errs
}

func checkNumber(number float64, v *schema.ValueValidation, at *field.Path) field.ErrorList {
	switch {
	case v.Minimum != nil && number < *v.Minimum:
		return field.ErrorList{field.Invalid(at, number, fmt.Sprintf("must be at least %v", *v.Minimum))}
	case v.Maximum != nil && number > *v.Maximum:
		return field.ErrorList{field.Invalid(at, number, fmt.Sprintf("must be at most %v", *v.Maximum))}
	case v.Format == "int32" && (number > math.MaxInt32 || number < math.MinInt32):
		return field.ErrorList{field.Invalid(at, number, "must fit 32 bits")}
	default:
		return nil
	}
}

// matches takes a pattern that does not compile for one that says nothing, as
// the server does.
func matches(pattern, text string) bool {
	expression, err := regexp.Compile(pattern)
	return err != nil || expression.MatchString(text)
}

package config

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// oneOf is the rule of a value with few spellings.
func oneOf[T ~string](at *field.Path, value T, known ...T) field.ErrorList {
	if slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, known)}
}

// atLeastN is the rule of a number that must not be too small.
func atLeastN(at *field.Path, value, least int) field.ErrorList {
	if value >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value, fmt.Sprintf("must be at least %d", least))}
}

// atLeast is the rule of a time that must not be too short.
func atLeast(at *field.Path, value metav1.Duration, least time.Duration) field.ErrorList {
	if value.Duration >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value.Duration.String(), "must be "+least.String()+" or more")}
}

package config

import (
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Tracing is where the operator tells what each reconcile did and why.
type Tracing struct {
	// Endpoint takes OTLP over HTTP, such as http://collector:4318; empty
	// turns tracing off.
	Endpoint string `json:"endpoint,omitempty"`
	// Ratio is the share of reconciles that are told about, from 0 to 1.
	Ratio float64 `json:"ratio,omitempty"`
}

func (t Tracing) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if u, err := url.Parse(t.Endpoint); t.Endpoint != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
		errs = append(errs, field.Invalid(at.Child("endpoint"), t.Endpoint, "must be http://host:port or https://host:port"))
	}
	if t.Ratio < 0 || t.Ratio > 1 {
		errs = append(errs, field.Invalid(at.Child("ratio"), t.Ratio, "must be from 0 to 1"))
	}
	return errs
}

// Package manifests holds the operator's own installation as it is shipped: the
// files that Kustomize reads, for programs that install without it.
package manifests

import "embed"

// Operator holds the operator's account, rights and Deployment. The definitions
// of its API are in package crd beside it.
//
//go:embed rbac/*.yaml manager/*.yaml webhook/*.yaml tenancy/*.yaml
var Operator embed.FS

// Namespaced holds what Kustomize makes the operator for one namespace from.
//
//go:embed rbac/*.yaml manager/*.yaml namespaced/*.yaml
var Namespaced embed.FS

// Converter holds what converts where no operator for the whole cluster does.
//
//go:embed converter/*.yaml
var Converter embed.FS

// Package guard names the checks that keep tenants apart, so that a test can run
// an attack against an operator without one of them and see it succeed. A guard
// stands beside the code that it protects:
//
//	if !allowed && !guard.Consent.Off() {
//		return refuse(...)
//	}
//
// In what is shipped no guard can be switched off: Off is constant. Only a program
// built with the tag unguarded, which tests build for themselves, asks its
// environment.
package guard

// Guard is a check that can be left out of a test's build.
type Guard string

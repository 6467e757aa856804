// Package version says which build a binary is.
package version

import "fmt"

// Set by the linker: -X .../internal/core/version.version=v1.2.3 and so on.
var (
	version = "dev"
	commit  = "unknown"
	date    = "unknown"
)

// String is one line for --version.
func String() string {
	return fmt.Sprintf("%s (commit %s, built %s)", version, commit, date)
}

// Short is the version alone.
func Short() string { return version }

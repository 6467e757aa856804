//go:build !unguarded

package guard

// Off reports whether the check is left out: never.
func (Guard) Off() bool { return false }

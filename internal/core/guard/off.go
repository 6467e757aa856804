//go:build !unguarded

package guard

import "k8s.io/utils/clock"

// Off reports whether the check is left out: never.
func (Guard) Off() bool { return false }

// Clock is this machine's.
func Clock() clock.WithTickerAndDelayedExecution { return clock.RealClock{} }

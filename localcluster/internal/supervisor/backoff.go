package supervisor

import "time"

const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
	// A program that ran this long is considered to have been healthy; its next failure is a new one.
	healthyRun = 30 * time.Second
)

// nextPause returns how long to wait before a restart, given the pause before the run that just ended.
func nextPause(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= healthyRun {
		return firstPause
	}
	return min(2*last, lastPause)
}

// Package timing says how long an engine computes: prefill by number of new
// tokens, decode by load. It knows numbers only; sleeping is the scheduler's.
package timing

import "time"

// Model is a source of step times.
type Model interface {
	// Prefill is the time to compute n prompt tokens that are not cached.
	Prefill(n int) time.Duration
	// Decode is the time of one step for all running sequences, which together
	// hold activeTokens in the cache and are meanLength long on average.
	Decode(activeTokens int, meanLength float64) time.Duration
}

// Polynomial is the runtime's own mock engine's model, fitted on one GPU.
type Polynomial struct{}

// Prefill is quadratic in the number of tokens.
func (Polynomial) Prefill(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	x := float64(n)
	return milliseconds(4.209989e-07*x*x + 1.518344e-02*x + 16.50142)
}

// decodePeak is where the parabola turns. Beyond it the formula would fall, and
// from 36,000 tokens on promise negative time; more load never is less work, so
// the peak holds from there on.
const decodePeak = 54.01 / (2 * 25.74)

// Decode depends on the active tokens alone.
func (Polynomial) Decode(activeTokens int, _ float64) time.Duration {
	a := min(float64(activeTokens)/16384, decodePeak)
	return milliseconds(-25.74*a*a + 54.01*a + 5.74)
}

func milliseconds(ms float64) time.Duration {
	return time.Duration(max(0, ms) * float64(time.Millisecond))
}

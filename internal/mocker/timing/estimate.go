package timing

import (
	"math"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Estimate times an engine by the performance model.
type Estimate struct {
	Estimator *perfmodel.Estimator
}

// Prefill costs its full time on an idle engine; beside decoding sequences, weights
// are read once for both.
func (e Estimate) Prefill(parts []Part, decode time.Duration) time.Duration {
	return e.Estimator.Pass(parts, decode) - decode
}

// Decode depends on the number of sequences and their mean length.
func (e Estimate) Decode(sequences, _ int, meanLength float64) time.Duration {
	return e.Estimator.Decode(sequences, math.Max(1, meanLength)).Value
}

// Transfer is that of a prompt's cache between nodes.
func (e Estimate) Transfer(tokens int) time.Duration { return e.Estimator.Transfer(tokens).Value }

// Delivery is the request's overhead.
func (e Estimate) Delivery() time.Duration { return e.Estimator.Overhead() }

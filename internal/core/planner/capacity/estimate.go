package capacity

import (
	"math"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Estimator is what is asked of the performance model.
type Estimator interface {
	FirstToken(tokens, cached int) perfmodel.Estimate
	Decode(batch int, context float64) perfmodel.Estimate
	Memory() perfmodel.Memory
	Setup() perfmodel.Setup
}

// FromEstimators is the model of replicas that the performance model times.
func FromEstimators(prefill, decode Estimator) (*Table, error) {
	e := estimated{prefill: prefill, decode: decode, ranks: max(1, decode.Setup().Parallel.DP)}
	const mostBatch = 1024 // beyond which no engine is configured
	return Tabulate(e, float64(prefill.Setup().Model.Context), mostBatch)
}

type estimated struct {
	prefill, decode Estimator
	ranks           int
}

func (e estimated) Prefill(tokens float64) float64 {
	return e.prefill.FirstToken(int(math.Ceil(tokens)), 0).Value.Seconds()
}

// Token is that of the fullest rank.
func (e estimated) Token(n, context float64) float64 {
	return e.decode.Decode(int(math.Ceil(n/float64(e.ranks))), context).Value.Seconds()
}

func (e estimated) Cache() float64 { return float64(e.decode.Memory().Tokens) }

package scale

import (
	"errors"
	"fmt"
	"math"

	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
)

// check refuses figures that nothing can be played with: rates that are no numbers would
// make requests without end, and requests without tokens have no time between them.
func (o *options) check() error {
	var problems []error
	want := func(good bool, flag string, value any, what string) {
		if !good {
			problems = append(problems, fmt.Errorf("--%s %v: want %s", flag, value, what))
		}
	}
	const positive, notNegative = "more than 0", "0 or more"
	finite := func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
	want(o.low >= 0 && finite(o.low), "low", o.low, notNegative)
	want(o.high > 0 && finite(o.high), "high", o.high, positive)
	want(o.period > 0, "period", o.period, positive)
	want(o.length > 0, "length", o.length, positive)
	want(o.repeat >= 0, "repeat", o.repeat, notNegative)
	want(o.input > 0, "isl", o.input, positive)
	want(o.output > 0, "osl", o.output, positive)
	want(o.rate > 0 && finite(o.rate), "rate-scale", o.rate, positive)
	want(o.time > 0 && finite(o.time), "time-scale", o.time, positive)
	want(o.spread >= 0 && finite(o.spread), "spread", o.spread, notNegative)
	want(o.ttft > 0 && finite(o.ttft), "ttft", o.ttft, positive)
	want(o.itl > 0 && finite(o.itl), "itl", o.itl, positive)
	want(o.price >= 0 && o.price <= price.Highest, "price", o.price, fmt.Sprintf("0 to %d", price.Highest))
	want(o.gpus >= 0, "gpus", o.gpus, notNegative)
	want(o.prefillGPUs >= 0, "prefill-gpus", o.prefillGPUs, notNegative)
	want(o.decodeGPUs >= 0, "decode-gpus", o.decodeGPUs, notNegative)
	want(o.quantile >= 0 && o.quantile < 1, "quantile", o.quantile, "0 or more, and less than 1")
	for _, startup := range o.startups {
		want(startup >= 0, "startup", startup, notNegative)
	}
	return errors.Join(problems...)
}

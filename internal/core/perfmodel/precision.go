package perfmodel

import "cmp"

// Precision is a number format of weights, activations or cache.
type Precision string

// The formats that the tables know.
const (
	BF16  Precision = "bf16"
	FP8   Precision = "fp8"
	FP4   Precision = "fp4"   // NVFP4: weights and activations
	MXFP4 Precision = "mxfp4" // as gpt-oss ships its experts
	INT4  Precision = "int4"  // weights only, computed in bf16
)

// Bytes is the room that a weight takes, its share of the scales included.
func (p Precision) Bytes() float64 {
	switch p {
	case FP8:
		return 1
	case FP4, INT4: // a scale of 8 bits for 16 weights, or of 16 bits for 32
		return 0.5625
	case MXFP4: // of 8 bits for 32
		return 0.53125
	default:
		return 2
	}
}

// activation is the room of one input element of a product in that format.
func (p Precision) activation() float64 {
	switch p {
	case FP8:
		return 1
	case FP4:
		return 0.5625
	default:
		return 2
	}
}

// Quantisation is the format of each part of a model. Empty fields mean what
// the model is published in.
type Quantisation struct {
	Weights Precision `json:"weights,omitempty"`
	Experts Precision `json:"experts,omitempty"`
	Cache   Precision `json:"cache,omitempty"`
}

// or fills in what q leaves open.
func (q Quantisation) or(published Quantisation) Quantisation {
	if q.Experts == "" {
		q.Experts = published.Experts
		if q.Weights != "" && q.Weights != published.Weights {
			q.Experts = q.Weights
		}
	}
	q.Weights, q.Cache = cmp.Or(q.Weights, published.Weights, BF16), cmp.Or(q.Cache, published.Cache, BF16)
	q.Experts = cmp.Or(q.Experts, q.Weights)
	return q
}

package perfmodel

import (
	"fmt"
	"math"
)

// Kernels are what a GPU reaches without an engine: times of single kernels,
// measured on one GPU and put into a few numbers. They shape the terms of the
// model and bound them: an engine is given shares of what its kernels reach, and
// no share is more than all. Other GPUs scale by their own peaks.
//
// A product of m rows with k by n weights takes
//
//	start + depth·k·(1 + narrow/n) + ∛(read³ + compute³) + written
//
// where reading the weights and inputs overlaps with computing, but the nearer
// the two are the less so, and where few columns leave parts of the GPU without
// work.
type Kernels struct {
	// GPU is the one that was measured.
	GPU string `json:"gpu"`

	Start  float64 `json:"startMicros"`
	Depth  float64 `json:"depthMicros"` // per 1024 of k
	Narrow float64 `json:"narrow"`      // columns
	// Shares of the peak, by kind of work.
	Read    float64               `json:"read"`    // bandwidth, of weights and inputs
	Written float64               `json:"written"` // how much of writing outputs is not hidden
	Compute map[Precision]float64 `json:"compute"`

	// Attention of a prompt to itself: a start in each layer, a share of the 16-bit
	// peak, and how many tiles of 128 rows of a head it takes to fill half the GPU.
	PromptStart float64 `json:"promptStartMicros"`
	Prompt      float64 `json:"prompt"`
	PromptFill  float64 `json:"promptFill"`
	// Attention of one token to its context: a start in each layer, and a share of
	// the bandwidth. Where the work of one head is not divided, Alone is what one
	// part of the GPU reads, in gigabytes a second.
	ContextStart float64 `json:"contextStartMicros"`
	Context      float64 `json:"context"`
	Alone        float64 `json:"aloneGBps"`
	// Norm and activation of one layer that are kernels of their own: starts, and
	// bytes moved for each element of the hidden size and of the network's width.
	PassStart      float64 `json:"passStartMicros"`
	HiddenBytes    float64 `json:"hiddenBytes"`
	ActivatedBytes float64 `json:"activatedBytes"`

	// Error is how far off these numbers are from the single measurements.
	Error KernelError `json:"error"`
}

// KernelError describes relative errors of products: without sign, and by how
// much the furthest is estimated too short.
type KernelError struct {
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Short  float64 `json:"short"`
}

func (k Kernels) validate() error {
	if k.GPU == "" || k.Read <= 0 || k.Read > 1 || k.Compute[BF16] <= 0 || k.Compute[BF16] > 1 || k.Prompt <= 0 || k.Context <= 0 {
		return fmt.Errorf("kernels: gpu, read, compute.bf16, prompt and context are needed, the latter as shares of the peak")
	}
	return nil
}

// compute is the share of the peak that products reach; of formats that were not
// measured, as much as the nearest one that was.
func (k Kernels) compute(p Precision) float64 {
	if p == INT4 {
		p = BF16
	}
	for _, near := range []Precision{p, FP8, BF16} {
		if v := k.Compute[near]; v > 0 {
			return v
		}
	}
	return 1
}

// passBandwidth is what kernels that compute next to nothing reach, a share of
// the peak.
const passBandwidth = 0.8

// Product is the time of a product on a GPU without an engine, in seconds.
func (k Kernels) Product(g GPU, p Precision, rows, columns, depth float64) float64 {
	c := cost{Setup: Setup{GPU: g}, kernels: k}
	c.streaming = g.bandwidth() * k.Read
	f := format{speed: g.flops(p) * k.compute(p), weight: p.Bytes(), input: p.activation()}
	return c.product(rows, columns, depth, &f)
}

// overlap is the time of two kinds of work that hide each other in part.
func overlap(a, b float64) float64 {
	return math.Cbrt(a*a*a + b*b*b)
}

// Fastest are constants that no engine gets below: a share of what kernels reach
// ends where the numbers of kernels are too short for some of them.
func (k Kernels) Fastest(engine Engine) Constants {
	c := k.Bare()
	c.Engine, c.Undivided, c.Unfused = engine, false, false
	c.Cache, c.Attention = 0.95, 0.9
	c.Compute = map[Precision]float64{BF16: 0.95, FP8: 0.9, FP4: 0.9}
	return c
}

// Bare are the constants of an engine without overhead: nothing but kernels, as
// plain PyTorch runs them from a recorded graph.
func (k Kernels) Bare() Constants {
	return Constants{
		Weights: 1, FourBit: 1, Cache: 1, Attention: 1, ExpertBandwidth: 1, ExpertCompute: 1, Reduce: 1, Exchange: 1, Scatter: 1,
		Compute:      map[Precision]float64{BF16: 1, FP8: 1, FP4: 1},
		Layer:        map[Generation]float64{Hopper: k.PassStart},
		ExpertLayer:  map[Generation]float64{Hopper: k.PassStart},
		Interference: 1, Own: 1, Equal: 1,
		Undivided: true, Unfused: true,
	}
}

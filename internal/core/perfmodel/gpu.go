package perfmodel

// Generation is a family of GPUs with kernels and launch costs of its own.
type Generation string

// The generations that constants exist for.
const (
	Ampere    Generation = "ampere"
	Ada       Generation = "ada"
	Hopper    Generation = "hopper"
	Blackwell Generation = "blackwell"
)

// GPU is what one accelerator can do at most.
type GPU struct {
	Name string `json:"name"`
	// Aliases are names used elsewhere: product labels of nodes, system names.
	Aliases    []string   `json:"aliases,omitempty"`
	Generation Generation `json:"generation"`
	// Teraflops per second by format, without sparsity.
	Teraflops map[Precision]float64 `json:"teraflops"`
	Memory    float64               `json:"memoryGiB"`
	Bandwidth float64               `json:"bandwidthGBps"` // of its memory
	Link      float64               `json:"linkGBps"`      // to its neighbours, each way
	Fabric    float64               `json:"fabricGBps"`    // to other nodes, each way
	// Domain is how many GPUs the link reaches.
	Domain int `json:"domain"`
}

// flops is the peak for a format; where the GPU lacks it, it computes in bf16
// (in fp8 for fp4 weights with fp8 hardware), as engines do.
func (g GPU) flops(p Precision) float64 {
	switch p {
	case INT4:
		p = BF16
	case MXFP4:
		p = FP4
		if g.Teraflops[p] > 0 {
			p = FP8 // activations stay in 8 bits
		}
	}
	if f := g.Teraflops[p]; f > 0 {
		return f * 1e12
	}
	return g.Teraflops[BF16] * 1e12
}

func (g GPU) bandwidth() float64 { return g.Bandwidth * 1e9 }

// link is the bandwidth among n GPUs.
func (g GPU) link(n int) float64 {
	if n > g.Domain {
		return g.Fabric * 1e9
	}
	return g.Link * 1e9
}

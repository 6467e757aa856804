package perfmodel

// Constants say how far an engine stays behind what the hardware could do. They
// are fitted on measurements by hack/perfmodel and shipped as data.
type Constants struct {
	Engine Engine `json:"engine"`
	// Mixture constants are for models with experts, which engines run by other
	// kernels.
	Mixture bool `json:"mixture,omitempty"`

	// Shares of the hardware's peak, by kind of work.
	Weights float64 `json:"weights"` // bandwidth while reading weights
	// FourBit is what weights of 4 bits reach of that: they come with scales and
	// are unpacked on the way. 0 means all of it.
	FourBit         float64               `json:"fourBit,omitempty"`
	Cache           float64               `json:"cache"`   // bandwidth while reading the cache
	Compute         map[Precision]float64 `json:"compute"` // of matrix products
	Attention       float64               `json:"attention"`
	ExpertBandwidth float64               `json:"expertBandwidth"`
	ExpertCompute   float64               `json:"expertCompute"`
	Reduce          float64               `json:"reduce"` // bandwidth of all-reduce
	// Scatter is how many independent choices of experts a token stands for: the
	// tokens of a sequence resemble each other and share experts.
	Scatter float64 `json:"scatter"`

	// Times that do not shrink with faster hardware, in microseconds.
	ReduceStart float64                `json:"reduceStartMicros"`
	ReduceHop   float64                `json:"reduceHopMicros"` // times log2 of the group
	Layer       map[Generation]float64 `json:"layerMicros"`
	ExpertLayer map[Generation]float64 `json:"expertLayerMicros"` // of one with experts
	Route       float64                `json:"routeMicros"`       // per layer and 100 experts
	LatentLayer float64                `json:"latentLayerMicros"` // in addition
	LinearLayer float64                `json:"linearLayerMicros"` // in addition
	SparseLayer float64                `json:"sparseLayerMicros"` // in addition
	Host        float64                `json:"hostMicros"`        // per step
	Sequence    float64                `json:"sequenceMicros"`    // per step and sequence
	First       float64                `json:"firstMicros"`       // per request

	// Interference is the share of other requests' prefill that a decoding
	// request waits for; Queue is the share of the prefill of those that arrived
	// together that a new request waits for.
	Interference float64 `json:"interference"`
	Queue        float64 `json:"queue"`
	// QueueGrowth is the power with which that wait grows with their number.
	QueueGrowth float64 `json:"queueGrowth"`

	// Error is what the fit left over on groups that it had not seen.
	Error Spread `json:"error"`
}

// Spread describes relative errors of the time per output token and of the
// time to the first token, without sign.
type Spread struct {
	TokenMedian float64 `json:"tokenMedian"`
	TokenP90    float64 `json:"tokenP90"`
	FirstMedian float64 `json:"firstMedian"`
	FirstP90    float64 `json:"firstP90"`
	// IdleP90 is of the first token at no more than four requests at a time.
	IdleP90 float64 `json:"idleP90"`
	Rows    int     `json:"rows"`
}

// beside is the share of a prefill by which it makes a step longer. SGLang
// computes prompts between steps, where nothing overlaps: there Interference is
// less than 1 because of requests that come together.
func (k Constants) beside() float64 {
	if k.Engine == SGLang {
		return 1
	}
	return k.Interference
}

// generationOf looks up a fixed time; a generation without a figure of its own
// is taken for the one before it.
func generationOf(table map[Generation]float64, g Generation) float64 {
	order := []Generation{Blackwell, Hopper, Ada, Ampere}
	found := false
	for _, o := range order {
		found = found || o == g
		if v, ok := table[o]; ok && found {
			return v
		}
	}
	for _, o := range order {
		if v, ok := table[o]; ok {
			return v
		}
	}
	return 0
}

func (k Constants) compute(p Precision) float64 {
	if p == MXFP4 {
		p = FP8
	}
	if v, ok := k.Compute[p]; ok {
		return v
	}
	return k.Compute[BF16]
}

package perfmodel

import "cmp"

// Constants say how far an engine stays behind what the hardware could do. They
// are fitted on measurements by hack/perfmodel and shipped as data.
type Constants struct {
	Engine Engine `json:"engine"`
	// Mixture constants are for models with experts, which engines run by other
	// kernels.
	Mixture bool `json:"mixture,omitempty"`

	// Shares of what kernels reach, by kind of work; see Kernels.
	Weights float64 `json:"weights"` // bandwidth while reading weights
	// FourBit is what weights of 4 bits reach of that: they come with scales and
	// are unpacked on the way. 0 means all of it.
	FourBit         float64               `json:"fourBit,omitempty"`
	Cache           float64               `json:"cache"`   // bandwidth while reading the cache
	Compute         map[Precision]float64 `json:"compute"` // of matrix products
	Attention       float64               `json:"attention"`
	ExpertBandwidth float64               `json:"expertBandwidth"`
	ExpertCompute   float64               `json:"expertCompute"`
	Reduce          float64               `json:"reduce"` // of the link's bandwidth, by all-reduce
	// Exchange is of the link's bandwidth, where attention ranks hand tokens to the GPUs
	// that have their experts, and back, and ExchangeStart what either takes at least, in
	// microseconds.
	Exchange      float64 `json:"exchange,omitempty"`
	ExchangeStart float64 `json:"exchangeStartMicros,omitempty"`
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
	// BlockScales is of a layer whose experts have 8 bits and a scale for each block, which
	// kernels of their own put inputs into; Unpack of one whose experts have the 4 bits of
	// MXFP4 where the GPU does not compute with them; and Quantise of each product whose
	// inputs are put into 4 bits.
	BlockScales float64 `json:"blockScalesMicros,omitempty"`
	Unpack      float64 `json:"unpackMicros,omitempty"`
	Quantise    float64 `json:"quantiseMicros,omitempty"`
	Host        float64 `json:"hostMicros"`     // per step
	Sequence    float64 `json:"sequenceMicros"` // per step and sequence
	First       float64 `json:"firstMicros"`    // per request

	// Busy is what a request takes beside others, and BusyLayer what it takes more for each
	// layer, perhaps as passes with prompts launch their kernels one by one; the others are
	// in addition, of layers with experts, with latent and with linear attention.
	Busy       float64 `json:"busyMicros"`
	BusyLayer  float64 `json:"busyLayerMicros,omitempty"`
	BusyExpert float64 `json:"busyExpertMicros,omitempty"`
	BusyLatent float64 `json:"busyLatentMicros,omitempty"`
	BusyLinear float64 `json:"busyLinearMicros,omitempty"`

	// Where a model was measured, Step is how many times as long as by all other
	// constants decode steps take, Prompt how many times as long prompts do, and Request
	// how many times as long First, all that is Busy and Handover are. Zero means once.
	Step    float64 `json:"step,omitempty"`
	Prompt  float64 `json:"prompt,omitempty"`
	Request float64 `json:"request,omitempty"`

	// Interference is the share of other requests' prefill that a decoding
	// request waits for.
	Interference float64 `json:"interference"`
	// A first token waits for the pass with its own prompt, which takes Own times
	// what is added to others' steps by it; for Wait steps of sequences that decode;
	// and, in a closed loop, for Queue of half of the others' prompts: how many of
	// those that could come together do. Equal and EqualQueue are Own and Queue of a loop of equal
	// requests, who come back together as far as the engine served them together.
	Own        float64 `json:"own"`
	Wait       float64 `json:"wait"`
	Queue      float64 `json:"queue"`
	Equal      float64 `json:"equal"`
	EqualQueue float64 `json:"equalQueue"`

	// Prefilling is how much of the rate at which its engines can compute prompts a
	// prefill pool reaches, and Handover is what a request takes to change pools,
	// in microseconds, beside moving its cache.
	Prefilling float64 `json:"prefilling,omitempty"`
	Handover   float64 `json:"handoverMicros,omitempty"`
	// Meeting is Queue where prompts have engines of their own, which no answer delays.
	Meeting float64 `json:"meeting,omitempty"`
	// Full is how much of an answer's time a request waits for a place in a decode pool
	// that has no more of them than there are users.
	Full float64 `json:"full,omitempty"`

	// GPUs are those on which the engine was measured.
	GPUs []string `json:"gpus,omitempty"`

	// Undivided attention reads a sequence's cache by one part of the GPU for each
	// head, and Unfused activations are kernels of their own. Engines do neither;
	// plain PyTorch does.
	Undivided bool `json:"undivided,omitempty"`
	Unfused   bool `json:"unfused,omitempty"`

	// Error is what the fit left over on groups that it had not seen.
	Error ErrorSpread `json:"error"`
	// KnownError is what it left over on deployments of models of which others were
	// measured, on the same GPU and in the same format.
	KnownError ErrorSpread `json:"knownError,omitzero"`
}

// ErrorSpread describes relative errors of the time per output token and of the
// time to the first token, without sign. A band holds nine of ten measurements of
// models that a fit has not seen.
type ErrorSpread struct {
	TokenMedian float64 `json:"tokenMedian"`
	TokenP90    float64 `json:"tokenP90"`
	FirstMedian float64 `json:"firstMedian"`
	// FirstP90 is of loads that come as measured ones did, spread; UnknownP90 of
	// those of which it is not known how they came, in step and open ones among
	// them.
	FirstP90   float64 `json:"firstP90"`
	UnknownP90 float64 `json:"unknownP90,omitempty"`
	// IdleP90 is of the first token at no more than four requests at a time.
	IdleP90 float64 `json:"idleP90"`
	// ApartP90 is of the time per output token of disaggregated deployments, and
	// ApartFirstP90 of their first token.
	ApartP90      float64 `json:"apartP90,omitempty"`
	ApartFirstP90 float64 `json:"apartFirstP90,omitempty"`
	// RateP90 is of requests per second.
	RateP90 float64 `json:"rateP90,omitempty"`
	// AmongP90 is of rates among the deployments of one model on one GPU, beside
	// what they have in common.
	AmongP90 float64 `json:"amongP90,omitempty"`
	// Elsewhere is how many times as wide bands are for GPUs that the engine was
	// not measured on.
	Elsewhere float64 `json:"elsewhere,omitempty"`
	Rows      int     `json:"rows"`
}

// widened is the spread for a GPU that nothing was measured on.
func (s ErrorSpread) widened() ErrorSpread {
	f := max(1, s.Elsewhere)
	for _, p := range []*float64{&s.TokenP90, &s.FirstP90, &s.UnknownP90, &s.IdleP90, &s.ApartP90, &s.ApartFirstP90, &s.RateP90} {
		*p *= f
	}
	return s
}

// first and handover are what a request takes beside the work of GPUs, in seconds.
func (k Constants) first() float64 { return cmp.Or(k.Request, 1) * k.First * 1e-6 }

func (k Constants) handover() float64 { return cmp.Or(k.Request, 1) * k.Handover * 1e-6 }

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

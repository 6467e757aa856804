package perfmodel

// Model is an architecture: the sizes that decide how much is computed, read
// and kept per token. They are those of the model's published configuration.
type Model struct {
	Name string `json:"name"`
	// Aliases are other names of the same architecture: other publishers,
	// quantised checkpoints, fine-tuned versions.
	Aliases []string `json:"aliases,omitempty"`

	Layers   int  `json:"layers"`
	Hidden   int  `json:"hidden"`
	Heads    int  `json:"heads"`
	KVHeads  int  `json:"kvHeads"`
	HeadSize int  `json:"headSize"`
	FFN      int  `json:"ffn,omitempty"` // of the dense layers
	Vocab    int  `json:"vocab"`
	Tied     bool `json:"tied,omitempty"` // input and output embedding are one
	Context  int  `json:"context"`

	Experts *Experts `json:"experts,omitempty"`
	Latent  *Latent  `json:"latent,omitempty"`
	Window  *Window  `json:"window,omitempty"`
	Linear  *Linear  `json:"linear,omitempty"`
	// Sparse is how many tokens of the context a layer attends to at most; 0
	// means all.
	Sparse int `json:"sparse,omitempty"`
	// Gated attention computes as many gates as query elements.
	Gated bool `json:"gated,omitempty"`
	// Normed attention scales queries and keys by their size over all heads, which
	// tensor-parallel ranks have to sum up before every layer's attention.
	Normed bool `json:"normed,omitempty"`

	Published Quantisation `json:"published,omitzero"`
}

// Experts is a mixture of experts.
type Experts struct {
	Count  int `json:"count"`
	Active int `json:"active"` // per token, shared ones not counted
	FFN    int `json:"ffn"`
	Shared int `json:"shared,omitempty"` // width of all shared experts together
	// Dense is how many of the layers have an ordinary network instead.
	Dense int `json:"dense,omitempty"`
}

// uneven is how many times as many experts as the mean the fullest of so many
// GPUs holds: engines repeat some where they do not divide.
func (e *Experts) uneven(gpus int) float64 {
	fullest := (e.Count + gpus - 1) / gpus
	return float64(fullest*gpus) / float64(e.Count)
}

// Latent is multi-head latent attention: the cache holds one compressed vector
// per token, the same on every GPU.
type Latent struct {
	Query int `json:"query"` // rank of the query's compression; 0 for none
	KV    int `json:"kv"`
	NoPE  int `json:"nope"`
	RoPE  int `json:"rope"`
	Value int `json:"value"`
}

// Window is attention to the last tokens only, in some of the layers.
type Window struct {
	Tokens int `json:"tokens"`
	Layers int `json:"layers"`
}

// Linear is attention with a state of fixed size, in some of the layers.
type Linear struct {
	Layers   int `json:"layers"`
	KeyHeads int `json:"keyHeads"`
	Heads    int `json:"heads"` // of values
	Size     int `json:"size"`  // of a head
}

// Mixture reports whether the model has experts.
func (m Model) Mixture() bool { return m.Experts != nil }

// attending is how many layers keep a cache that grows with the sequence.
func (m *Model) attending() int {
	if m.Linear != nil {
		return m.Layers - m.Linear.Layers
	}
	return m.Layers
}

// expertLayers is how many layers have experts.
func (m *Model) expertLayers() int {
	if m.Experts == nil {
		return 0
	}
	return m.Layers - m.Experts.Dense
}

// attentionWeights counts the elements of one layer's projections.
func (m *Model) attentionWeights() float64 {
	h := float64(m.Hidden)
	if l := m.Latent; l != nil {
		heads := float64(m.Heads)
		query := h * heads * float64(l.NoPE+l.RoPE)
		if l.Query > 0 {
			query = float64(l.Query) * (h + heads*float64(l.NoPE+l.RoPE))
		}
		return query + h*float64(l.KV+l.RoPE) + float64(l.KV)*heads*float64(l.NoPE+l.Value) + heads*float64(l.Value)*h
	}
	n, kv, d := float64(m.Heads), float64(m.KVHeads), float64(m.HeadSize)
	query := n
	if m.Gated {
		query = 2 * n
	}
	return h*(query+2*kv)*d + n*d*h
}

// lastProjection counts those of them that lead back to the hidden size.
func (m *Model) lastProjection() float64 {
	width := m.HeadSize
	if m.Latent != nil {
		width = m.Latent.Value
	}
	return float64(m.Heads*width) * float64(m.Hidden)
}

// linearWeights counts the elements of one linear-attention layer's projections.
func (m *Model) linearWeights() float64 {
	l := m.Linear
	if l == nil {
		return 0
	}
	h, keys, values := float64(m.Hidden), float64(l.KeyHeads*l.Size), float64(l.Heads*l.Size)
	return h*(2*keys+2*values+2*float64(l.Heads)) + values*h
}

// Parameters counts all weights, and those that one token passes through.
func (m Model) Parameters() (total, active float64) {
	h := float64(m.Hidden)
	shared := float64(m.attending())*m.attentionWeights() + float64(m.Layers-m.attending())*m.linearWeights()
	shared += 3 * h * float64(m.FFN) * float64(m.Layers-m.expertLayers())
	embedding := h * float64(m.Vocab)
	if !m.Tied {
		embedding *= 2
	}
	total, active = shared+embedding, shared+embedding
	if e := m.Experts; e != nil {
		layers := float64(m.expertLayers())
		one := 3 * h * float64(e.FFN)
		always := layers * (3*h*float64(e.Shared) + h*float64(e.Count))
		total += always + layers*one*float64(e.Count)
		active += always + layers*one*float64(e.Active)
	}
	return total, active
}

// cachePerToken is how many elements a token keeps in the cache. Layers with a
// window are counted like the others: not every engine gives back what slid out.
func (m *Model) cachePerToken() float64 {
	if m.Latent != nil {
		return float64(m.attending()) * float64(m.Latent.KV+m.Latent.RoPE)
	}
	return float64(m.attending()) * 2 * float64(m.KVHeads*m.HeadSize)
}

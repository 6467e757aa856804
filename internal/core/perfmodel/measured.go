package perfmodel

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"
)

// Measured is how one model on one GPU in one format differs from what an engine's
// constants say. An engine's kernels happen to suit one model better than another,
// which no other model tells, so it is known of what was measured alone.
type Measured struct {
	Engine Engine `json:"engine"`
	Model  string `json:"model"`
	GPU    string `json:"gpu"`
	// Weights is the format of the experts, and of all weights where there are none.
	Weights Precision `json:"weights"`
	// Pool is of engines in a prefill or a decode pool, which have less to do at a time.
	Pool bool `json:"pool,omitempty"`
	// Step is how many times as long decode steps take, Prompt how many times as long
	// prompts do, and Request what a request takes beside the work of GPUs. Zero means
	// once.
	Step    float64 `json:"step"`
	Prompt  float64 `json:"prompt,omitempty"`
	Request float64 `json:"request,omitempty"`
	Rows    int     `json:"rows,omitempty"` // that say so
}

// MarshalMeasured writes what was measured in the form of a table.
func MarshalMeasured(measured []Measured) ([]byte, error) {
	return yaml.Marshal(file{Version: FormatVersion, Measured: measured})
}

// Most is how many times as long, or as short, as estimated something can take that
// differs in nothing but its kernels and its host. Prompts of a GPU for which an engine
// has no kernels of its own were measured to take several times as long.
var Most = Measured{Step: 2, Prompt: 8, Request: 4}

// resolve checks what was measured, and calls model and GPU by the names of their
// tables.
func (m *Measured) resolve(c Catalog) error {
	if m.Engine == "" || m.Weights == "" {
		return fmt.Errorf("measured %s: engine and weights are needed", m.name())
	}
	model, err := c.Model(m.Model)
	if err != nil {
		return fmt.Errorf("measured %s: %w", m.name(), err)
	}
	gpu, err := c.GPU(m.GPU)
	if err != nil {
		return fmt.Errorf("measured %s: %w", m.name(), err)
	}
	m.Model, m.GPU = model.Name, gpu.Name
	for _, f := range []struct {
		name        string
		value, most float64
	}{{"step", m.Step, Most.Step}, {"prompt", cmp.Or(m.Prompt, 1), Most.Prompt}, {"request", cmp.Or(m.Request, 1), Most.Request}} {
		if f.value < 1/f.most || f.value > f.most {
			return fmt.Errorf("measured %s: %s is %g, want %g to %g", m.name(), f.name, f.value, 1/f.most, f.most)
		}
	}
	return nil
}

func (m Measured) name() string {
	return fmt.Sprint(m.Engine, " ", m.Model, " ", m.GPU, " ", m.Weights, map[bool]string{true: " pool"}[m.Pool])
}

// Apply gives constants what was measured, and the bands of that. Nothing measured
// leaves them as they are.
func (m Measured) Apply(k Constants) Constants {
	if m.Step == 0 {
		return k
	}
	k.Step, k.Prompt, k.Request = m.Step, m.Prompt, m.Request
	if k.KnownError.Rows > 0 {
		k.Error = k.KnownError
	}
	return k
}

// Format is the one that most weights of a model have.
func (s Setup) Format() Precision {
	q := s.Quantisation.or(s.Model.Published)
	if s.Model.Mixture() {
		return q.Experts
	}
	return q.Weights
}

// Same reports whether two models have the same architecture: a checkpoint of
// another publisher, in another format or for other lengths is no other model.
func (m Model) Same(o Model) bool {
	m.Name, m.Aliases, m.Published, m.Context = o.Name, o.Aliases, o.Published, o.Context
	return reflect.DeepEqual(m, o)
}

// InPool is what an aggregated engine tells of one in a pool: of steps alone, as who
// waits for what differs.
func (m Measured) InPool() Measured {
	m.Pool, m.Prompt, m.Request = true, 0, 0
	return m
}

// measured is what was measured of a setup's model, if anything was.
func (c Catalog) measured(s Setup, pool bool) Measured {
	for _, m := range c.Measured {
		if m.Engine != s.Engine || m.GPU != s.GPU.Name || m.Weights != s.Format() || m.Pool != pool {
			continue
		}
		if slices.ContainsFunc(c.Models, func(o Model) bool { return o.Name == m.Model && o.Same(s.Model) }) {
			return m
		}
	}
	if pool {
		return c.measured(s, false).InPool()
	}
	return Measured{}
}

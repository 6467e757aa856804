package perfmodel

import (
	"cmp"
	"fmt"
	"reflect"

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
	// Step is how many times as long decode steps take, and Request what a request
	// of an aggregated engine takes beside the work of GPUs. Zero means once.
	Step    float64 `json:"step"`
	Request float64 `json:"request,omitempty"`
	Rows    int     `json:"rows,omitempty"` // that say so
}

// MarshalMeasured writes what was measured in the form of a table.
func MarshalMeasured(measured []Measured) ([]byte, error) {
	return yaml.Marshal(file{Version: FormatVersion, Measured: measured})
}

// MostStep and MostRequest bound how many times as long, or as short, as estimated
// something can take that differs in nothing but its kernels and its host.
const MostStep, MostRequest = 2.0, 4.0

func (m Measured) validate() error {
	if m.Engine == "" || m.Model == "" || m.GPU == "" || m.Weights == "" {
		return fmt.Errorf("measured: engine, model, gpu and weights are needed")
	}
	for _, f := range []struct {
		name        string
		value, most float64
	}{{"step", m.Step, MostStep}, {"request", cmp.Or(m.Request, 1), MostRequest}} {
		if f.value < 1/f.most || f.value > f.most {
			return fmt.Errorf("measured %s: %s is %g, want %g to %g", m.name(), f.name, f.value, 1/f.most, f.most)
		}
	}
	return nil
}

func (m Measured) name() string {
	return fmt.Sprint(m.Engine, " ", key(m.Model), " ", key(m.GPU), " ", m.Weights)
}

// Apply gives constants what was measured, and the bands of that. Nothing measured
// leaves them as they are.
func (m Measured) Apply(k Constants) Constants {
	if m.Step == 0 {
		return k
	}
	k.Step, k.Request = m.Step, m.Request
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

// measured is what was measured of a setup's model, if anything was.
func (c Catalog) measured(s Setup) Measured {
	for _, m := range c.Measured {
		if m.Engine != s.Engine || m.Weights != s.Format() {
			continue
		}
		gpu, err := c.GPU(m.GPU)
		if err != nil || gpu.Name != s.GPU.Name {
			continue
		}
		if model, err := c.Model(m.Model); err == nil && model.Same(s.Model) {
			return m
		}
	}
	return Measured{}
}

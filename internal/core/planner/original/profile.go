package original

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/interp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original/surface"
)

// cells is how many places of each axis its decode table has.
const cells = 100

// Profile is a profile as it interpolates it: SciPy's interp1d with kind "cubic" along
// prompts, and its griddata with method "cubic" in a table of cache usage by context.
type Profile struct {
	first, last  float64 // prompts
	ttft, prompt interp.NotAKnotCubic
	token        [cells][cells]float64 // by usage, then context
	throughput   [cells][cells]float64
	longest      float64
	cache        float64
}

// NewProfile interpolates a profile. Prompts need four lengths for a cubic.
func NewProfile(p capacity.Profile) (*Profile, error) {
	out := &Profile{cache: p.CacheTokens}
	if err := out.fitPrompts(p); err != nil {
		return nil, fmt.Errorf("interpolate prefill data: %w", err)
	}
	if err := out.tabulate(p); err != nil {
		return nil, fmt.Errorf("interpolate decode data: %w", err)
	}
	return out, nil
}

// tabulate lays a smooth surface over decode's places as they are: a share of the cache beside
// thousands of tokens. What is outside of them has the value of the nearest.
func (p *Profile) tabulate(from capacity.Profile) error {
	for i, context := range from.Context {
		if sum := from.Token[i] + from.OutputThroughput[i]; !(context > 0) || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return errors.New("a length that is not positive, or no number")
		}
	}
	mesh, err := surface.NewMesh(from.Usage, from.Context)
	if err != nil {
		return err
	}
	p.longest = slices.Max(from.Context)
	fill(&p.token, mesh.Surface(from.Token), p.longest)
	fill(&p.throughput, mesh.Surface(from.OutputThroughput), p.longest)
	return nil
}

func fill(table *[cells][cells]float64, s *surface.Surface, longest float64) {
	for i := range table {
		for j := range table[i] {
			usage, context := place(i, 1), place(j, longest)
			v, inside := s.At(usage, context)
			if !inside {
				v = s.Nearest(usage, context)
			}
			table[i][j] = v
		}
	}
}

// place is where a cell of an axis is, rounded as NumPy does.
func place(i int, end float64) float64 {
	if i == cells-1 {
		return end
	}
	return float64(i) * (end / (cells - 1))
}

// fitPrompts interpolates between lengths of prompts. Nobody says that they are in order and
// that each is there once, which a fit takes for granted.
func (p *Profile) fitPrompts(from capacity.Profile) error {
	type prompt struct{ input, ttft, throughput float64 }
	all := make([]prompt, 0, len(from.Input))
	for i, input := range from.Input {
		one := prompt{input, from.FirstToken[i], from.InputThroughput[i]}
		if sum := one.input + one.ttft + one.throughput; math.IsNaN(sum) || math.IsInf(sum, 0) {
			return fmt.Errorf("length %v: no number", input)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b prompt) int { return cmp.Compare(a.input, b.input) })
	all = slices.CompactFunc(all, func(a, b prompt) bool { return a.input == b.input })
	if len(all) < 4 {
		return fmt.Errorf("%d lengths, a cubic needs 4", len(all))
	}
	var x, ttft, throughput []float64
	for _, one := range all {
		x, ttft, throughput = append(x, one.input), append(ttft, one.ttft), append(throughput, one.throughput)
	}
	p.first, p.last = x[0], x[len(x)-1]
	return errors.Join(p.ttft.Fit(x, ttft), p.prompt.Fit(x, throughput))
}

func (p *Profile) prompts(input float64) float64 { return min(max(input, p.first), p.last) }

// FirstToken is in milliseconds.
func (p *Profile) FirstToken(input float64) float64 { return p.ttft.Predict(p.prompts(input)) }

// PrefillThroughput is in tokens per second and GPU.
func (p *Profile) PrefillThroughput(input float64) float64 {
	return p.prompt.Predict(p.prompts(input))
}

// Token is in milliseconds, of so many requests of a length.
func (p *Profile) Token(concurrency, context float64) float64 {
	return p.token[cell(concurrency*context/p.cache)][p.column(context)]
}

// BestThroughput is that of the fullest cell of a context whose time is within the
// target, in tokens per second and GPU; of the emptiest where none is.
func (p *Profile) BestThroughput(token, context float64) float64 {
	j := p.column(context)
	for i := cells - 1; i > 0; i-- {
		if p.token[i][j] <= token {
			return p.throughput[i][j]
		}
	}
	return p.throughput[0][j]
}

func (p *Profile) column(context float64) int { return cell(context / p.longest) }

// cell is the nearest place of a share.
func cell(share float64) int {
	if !(share > 0) {
		return 0
	}
	return int(min(math.Round(share*(cells-1)), cells-1))
}

// Package capacity says how many replicas a load needs: how long a replica takes
// by a table of its times, how long requests wait for it, and how far the table is
// from what is observed. It decides nothing and remembers nothing but a ratio.
//
// Times are seconds, rates are per second, lengths are tokens.
package capacity

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Model times one replica of each role.
type Model interface {
	// Prefill is the time to compute a prompt on a replica that has nothing else to do.
	Prefill(tokens float64) float64
	// Token is the time between two tokens of each of so many sequences of a mean
	// length. It never falls with more sequences or longer ones.
	Token(sequences, context float64) float64
	// Cache is how many tokens the sequences of a decode replica may have together.
	Cache() float64
}

// The places of a table. Lengths beyond the last are extended by the last slope.
const (
	prompts   = 128
	sequences = 128
	contexts  = 32
)

// Table is a model as numbers at even distances, so that a lookup costs
// nanoseconds: a simulation makes one for every token's worth of change.
type Table struct {
	prefill     []float64 // by prompt
	promptStep  float64
	token       []float64 // by sequences, then by context
	batchStep   float64
	contextStep float64
	cache       float64
}

// Tabulate samples a model up to the longest prompt and context and the largest
// batch that matter. What falls along the way is lifted to what came before: a
// measurement's noise must not make more load look cheaper.
func Tabulate(m Model, longest, batch float64) (*Table, error) {
	if !(longest > 0) || !(batch > 0) || !(m.Cache() > 0) || math.IsInf(longest+batch+m.Cache(), 0) {
		return nil, fmt.Errorf("tabulate a model up to %v tokens and %v sequences with a cache of %v: want positive numbers", longest, batch, m.Cache())
	}
	t := &Table{promptStep: longest / (prompts - 1), batchStep: batch / (sequences - 1), contextStep: longest / (contexts - 1), cache: m.Cache()}
	for i := range prompts {
		t.prefill = append(t.prefill, m.Prefill(max(1, float64(i)*t.promptStep)))
	}
	for i := range sequences {
		for j := range contexts {
			t.token = append(t.token, m.Token(float64(i)*t.batchStep, max(1, float64(j)*t.contextStep)))
		}
	}
	if slices.ContainsFunc(append(slices.Clone(t.prefill), t.token...), func(v float64) bool { return !(v > 0) || math.IsInf(v, 0) }) {
		return nil, errors.New("tabulate a model: a time is not positive")
	}
	for i := 1; i < prompts; i++ {
		t.prefill[i] = max(t.prefill[i], t.prefill[i-1])
	}
	for i := range sequences {
		for j := range contexts {
			at := i*contexts + j
			if i > 0 {
				t.token[at] = max(t.token[at], t.token[at-contexts])
			}
			if j > 0 {
				t.token[at] = max(t.token[at], t.token[at-1])
			}
		}
	}
	// Beyond the table the last slope goes on, so it must not fall either: neither that of
	// sequences with the context, nor that of the context with sequences.
	const row, column = (sequences - 1) * contexts, contexts - 1
	for j := 1; j < contexts; j++ {
		at := row + j
		t.token[at] = max(t.token[at], t.token[at-contexts]+t.token[at-1]-t.token[at-1-contexts])
	}
	for i := 1; i < sequences; i++ {
		at := i*contexts + column
		t.token[at] = max(t.token[at], t.token[at-1]+t.token[at-contexts]-t.token[at-1-contexts])
	}
	return t, nil
}

// Prefill is linear between the table's places.
func (t *Table) Prefill(tokens float64) float64 {
	x := max(0, tokens) / t.promptStep
	i := int(min(x, prompts-2)) // a huge number is no int
	return t.prefill[i] + (x-float64(i))*(t.prefill[i+1]-t.prefill[i])
}

// Token is linear between the table's places in either direction.
func (t *Table) Token(n, context float64) float64 {
	x, y := max(0, n)/t.batchStep, max(0, context)/t.contextStep
	i, j := int(min(x, sequences-2)), int(min(y, contexts-2))
	x -= float64(i)
	y -= float64(j)
	low, high := t.token[i*contexts+j:], t.token[(i+1)*contexts+j:]
	a := low[0] + y*(low[1]-low[0])
	b := high[0] + y*(high[1]-high[0])
	return a + x*(b-a)
}

// Cache is the table's.
func (t *Table) Cache() float64 { return t.cache }

// Curve is a model of a prefill time by length and a token time that grows with the
// sequences and with what they hold together, the form that measured engines have
// within a few per cent.
type Curve struct {
	Lengths, Times []float64 // of prompts, lengths ascending
	// Step is the time of an empty step; Sequence and Held are what a sequence and a
	// held token add to it.
	Step, Sequence, Held float64
	Tokens               float64 // of the cache
}

// Prefill is linear between the lengths, constant before the first and in proportion
// after the last.
func (c Curve) Prefill(tokens float64) float64 {
	last := len(c.Lengths) - 1
	switch {
	case tokens <= c.Lengths[0]:
		return c.Times[0]
	case tokens >= c.Lengths[last]:
		return c.Times[last] * tokens / c.Lengths[last]
	}
	i, _ := slices.BinarySearch(c.Lengths, tokens)
	share := (tokens - c.Lengths[i-1]) / (c.Lengths[i] - c.Lengths[i-1])
	return c.Times[i-1] + share*(c.Times[i]-c.Times[i-1])
}

// Token is affine in the sequences and in the tokens that they hold.
func (c Curve) Token(n, context float64) float64 {
	return c.Step + c.Sequence*n + c.Held*n*context
}

// Cache is the curve's.
func (c Curve) Cache() float64 { return c.Tokens }

// H200 is a model of 8 billion parameters on one H200 as NVIDIA published its
// profile: what the figures of policies are compared on.
func H200() *Table {
	t, err := Tabulate(Curve{
		Lengths: []float64{100, 1117, 2134, 3151, 4168, 5185, 6202, 7219, 8236, 9253, 10270, 11287, 12304, 13321, 14338, 15355, 16372},
		Times: []float64{.019525, .038494, .049968, .063215, .087342, .104894, .123237, .143295, .171029, .194532, .232073, .240384,
			.26246, .296155, .31334, .354089, .375483},
		Step: .0043, Sequence: .00004, Held: .00003e-3, Tokens: 945029,
	}, 16372, 512)
	if err != nil {
		panic(err) // the numbers are part of the program, and a test reads them
	}
	return t
}

// Aggregated is a replica that computes prompts and answers both: each token waits for
// its share of the prompts that take the places of those that end.
type Aggregated struct {
	Model
	Lengths Lengths
}

// Token includes the prompts: of n sequences one in Output ends with every token.
func (a Aggregated) Token(n, context float64) float64 {
	return a.Model.Token(n, context) + max(0, n)/max(1, a.Lengths.Output)*a.Prefill(a.Lengths.fresh(a.Lengths.Input))
}

package timing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Profile is a model made of measurements: straight lines between measured
// points, and on beyond the last ones.
type Profile struct {
	prefill line
	rows    []row // by length
	tokens  float64
}

// row holds step times at one mean length, by cache usage.
type row struct {
	length float64
	times  line
}

// line is a function given by points, x ascending.
type line []struct{ x, y float64 }

// Load reads a folder with prefill_raw_data.json and decode_raw_data.json, the
// form in which a profile travels in a ConfigMap.
func Load(folder string) (*Profile, error) {
	var prefill struct {
		Tokens []float64 `json:"prefill_isl"`
		Time   []float64 `json:"prefill_ttft"`
	}
	var decode struct {
		Usage  []float64       `json:"x_kv_usage"`
		Length []float64       `json:"y_context_length"`
		Time   []float64       `json:"z_itl"`
		Max    json.RawMessage `json:"max_kv_tokens"`
	}
	if err := read(filepath.Join(folder, "prefill_raw_data.json"), &prefill); err != nil {
		return nil, err
	}
	if err := read(filepath.Join(folder, "decode_raw_data.json"), &decode); err != nil {
		return nil, err
	}
	p := &Profile{}
	var err error
	if p.tokens, err = oneNumber(decode.Max); err != nil || p.tokens <= 0 {
		return nil, fmt.Errorf("profile data %s: max_kv_tokens is %s", folder, decode.Max)
	}
	if p.prefill, err = newLine(prefill.Tokens, prefill.Time); err != nil {
		return nil, fmt.Errorf("profile data %s: prefill: %w", folder, err)
	}
	if p.rows, err = newRows(decode.Usage, decode.Length, decode.Time); err != nil {
		return nil, fmt.Errorf("profile data %s: decode: %w", folder, err)
	}
	return p, nil
}

func read(file string, into any) error {
	body, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// oneNumber reads 5 or [5].
func oneNumber(raw json.RawMessage) (float64, error) {
	var n float64
	if err := json.Unmarshal(raw, &n); err == nil {
		return n, nil
	}
	var list []float64
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != 1 {
		return 0, fmt.Errorf("neither a number nor a list of one: %s", raw)
	}
	return list[0], nil
}

func newLine(x, y []float64) (line, error) {
	if len(x) != len(y) || len(x) == 0 {
		return nil, fmt.Errorf("%d places and %d values", len(x), len(y))
	}
	var l line
	for i := range x {
		l = append(l, struct{ x, y float64 }{x[i], y[i]})
	}
	slices.SortFunc(l, func(a, b struct{ x, y float64 }) int { return cmp.Compare(a.x, b.x) })
	return slices.CompactFunc(l, func(a, b struct{ x, y float64 }) bool { return a.x == b.x }), nil
}

func newRows(usage, length, times []float64) ([]row, error) {
	if len(usage) != len(length) || len(usage) != len(times) || len(usage) == 0 {
		return nil, fmt.Errorf("%d, %d and %d values", len(usage), len(length), len(times))
	}
	xs, ys := map[float64][]float64{}, map[float64][]float64{}
	for i, l := range length {
		xs[l], ys[l] = append(xs[l], usage[i]), append(ys[l], times[i])
	}
	var rows []row
	for l := range xs {
		times, err := newLine(xs[l], ys[l])
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{length: l, times: times})
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.length, b.length) })
	return rows, nil
}

// at interpolates, or extends the nearest segment.
func (l line) at(x float64) float64 {
	if len(l) == 1 {
		return l[0].y
	}
	i := 1
	for i < len(l)-1 && x > l[i].x {
		i++
	}
	a, b := l[i-1], l[i]
	return a.y + (b.y-a.y)*(x-a.x)/(b.x-a.x)
}

// Prefill interpolates the measured time to first token.
func (p *Profile) Prefill(n int) time.Duration {
	if n <= 0 {
		return 0
	}
	return milliseconds(p.prefill.at(float64(n)))
}

// Decode interpolates over cache usage within the measured lengths next to
// meanLength, then between those.
func (p *Profile) Decode(activeTokens int, meanLength float64) time.Duration {
	usage := float64(activeTokens) / p.tokens
	var between line
	for _, r := range p.rows {
		between = append(between, struct{ x, y float64 }{r.length, r.times.at(usage)})
	}
	return milliseconds(between.at(meanLength))
}

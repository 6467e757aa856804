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

// Load reads profile data in any form in which it travels: the mock engine's own
// archive, or a folder with the planner's two archives or two JSON files.
func Load(path string) (*Profile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return loadGrid(path)
	}
	prefill := filepath.Join(path, "selected_prefill_interpolation", "raw_data.npz")
	decode := filepath.Join(path, "selected_decode_interpolation", "raw_data.npz")
	if _, err := os.Stat(prefill); err == nil {
		return loadArchives(prefill, decode)
	}
	return loadFolder(path)
}

// loadGrid reads the mock engine's archive: step times on a grid of active
// tokens and lengths.
func loadGrid(file string) (*Profile, error) {
	data, err := readArchive(file)
	if err != nil {
		return nil, err
	}
	active, lengths, times := data["decode_active_kv_tokens"], data["decode_context_length"], data["decode_itl"]
	if len(times) != len(active)*len(lengths) {
		return nil, fmt.Errorf("profile data %s: decode: %d times for %d loads and %d lengths", file, len(times), len(active), len(lengths))
	}
	var xs, ys []float64
	for _, a := range active {
		for _, l := range lengths {
			xs, ys = append(xs, a), append(ys, l)
		}
	}
	return newProfile(file, data["prefill_isl"], data["prefill_ttft_ms"], xs, ys, times, 1)
}

// loadArchives reads the planner's archives.
func loadArchives(prefill, decode string) (*Profile, error) {
	p, err := readArchive(prefill)
	if err != nil {
		return nil, err
	}
	d, err := readArchive(decode)
	if err != nil {
		return nil, err
	}
	if len(d["max_kv_tokens"]) != 1 {
		return nil, fmt.Errorf("profile data %s: max_kv_tokens is %v", decode, d["max_kv_tokens"])
	}
	return newProfile(filepath.Dir(filepath.Dir(prefill)), p["prefill_isl"], p["prefill_ttft"], d["x_kv_usage"], d["y_context_length"], d["z_itl"], d["max_kv_tokens"][0])
}

// loadFolder reads prefill_raw_data.json and decode_raw_data.json, the form in
// which a profile travels in a ConfigMap.
func loadFolder(folder string) (*Profile, error) {
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
	tokens, err := oneNumber(decode.Max)
	if err != nil {
		return nil, fmt.Errorf("profile data %s: max_kv_tokens is %s", folder, decode.Max)
	}
	return newProfile(folder, prefill.Tokens, prefill.Time, decode.Usage, decode.Length, decode.Time, tokens)
}

// newProfile puts a profile together; tokens is the cache of which usage is a share.
func newProfile(from string, isl, ttft, usage, length, itl []float64, tokens float64) (*Profile, error) {
	if tokens <= 0 {
		return nil, fmt.Errorf("profile data %s: max_kv_tokens is %v", from, tokens)
	}
	p := &Profile{tokens: tokens}
	var err error
	if p.prefill, err = newLine(isl, ttft); err != nil {
		return nil, fmt.Errorf("profile data %s: prefill: %w", from, err)
	}
	if p.rows, err = newRows(usage, length, itl); err != nil {
		return nil, fmt.Errorf("profile data %s: decode: %w", from, err)
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

// Prefill interpolates the measured time to first token, of each prompt.
func (p *Profile) Prefill(parts []Part, _ time.Duration) time.Duration {
	var total time.Duration
	for _, part := range parts {
		total += milliseconds(p.prefill.at(float64(part.Fresh)))
	}
	return total
}

// Transfer was not measured.
func (p *Profile) Transfer(int) time.Duration { return 0 }

// Delivery is part of the measured time to first token.
func (p *Profile) Delivery() time.Duration { return 0 }

// Decode interpolates over cache usage within the measured lengths next to
// meanLength, then between those.
func (p *Profile) Decode(_, activeTokens int, meanLength float64) time.Duration {
	usage := float64(activeTokens) / p.tokens
	var between line
	for _, r := range p.rows {
		between = append(between, struct{ x, y float64 }{r.length, r.times.at(usage)})
	}
	return milliseconds(between.at(meanLength))
}

package capacity

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Profile is what a profiler measured, in the form in which the original's planner
// reads it. Times are milliseconds, throughputs tokens per second and GPU.
type Profile struct {
	Input                   []float64 // of prompts
	FirstToken              []float64
	InputThroughput         []float64
	Usage, Context          []float64 // of the cache, and of sequences; the four go together
	Token, OutputThroughput []float64
	CacheTokens             float64
}

// ReadProfile reads a profile from a folder, where the original's planner looks for it:
// archives if there are any, or else JSON.
func ReadProfile(folder fs.FS) (Profile, error) {
	var files [2][]byte
	for i, role := range []string{"prefill", "decode"} {
		body, err := readBounded(folder, path.Join("selected_"+role+"_interpolation", "raw_data.npz"))
		if errors.Is(err, fs.ErrNotExist) {
			body, err = readBounded(folder, role+"_raw_data.json")
		}
		if err != nil {
			return Profile{}, fmt.Errorf("read a profile: %w", err)
		}
		files[i] = body
	}
	return ParseProfile(files[0], files[1])
}

func readBounded(folder fs.FS, name string) ([]byte, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, mostBytes))
}

// ParseProfile reads a profile from its two files: NumPy archives or JSON, which
// their first bytes tell.
func ParseProfile(prefill, decode []byte) (Profile, error) {
	p, err := arrays(prefill)
	if err != nil {
		return Profile{}, fmt.Errorf("prefill data: %w", err)
	}
	d, err := arrays(decode)
	if err != nil {
		return Profile{}, fmt.Errorf("decode data: %w", err)
	}
	profile := Profile{
		Input: p["prefill_isl"], FirstToken: p["prefill_ttft"], InputThroughput: p["prefill_thpt_per_gpu"],
		Usage: d["x_kv_usage"], Context: d["y_context_length"], Token: d["z_itl"], OutputThroughput: d["z_thpt_per_gpu"],
	}
	if cache := d["max_kv_tokens"]; len(cache) == 1 {
		profile.CacheTokens = cache[0]
	}
	return profile, profile.check()
}

func (p Profile) check() error {
	n, m := len(p.Input), len(p.Usage)
	switch {
	case n == 0 || len(p.FirstToken) != n || len(p.InputThroughput) != n:
		return fmt.Errorf("prefill data: %d lengths, %d times and %d throughputs", n, len(p.FirstToken), len(p.InputThroughput))
	case m == 0 || len(p.Context) != m || len(p.Token) != m || len(p.OutputThroughput) != m:
		return fmt.Errorf("decode data: %d usages, %d lengths, %d times and %d throughputs", m, len(p.Context), len(p.Token), len(p.OutputThroughput))
	case !(p.CacheTokens > 0):
		return errors.New("decode data: max_kv_tokens is no positive number")
	}
	return nil
}

// arrays are the lists of a file by name; a number is a list of one.
func arrays(file []byte) (map[string][]float64, error) {
	if bytes.HasPrefix(file, []byte("PK")) {
		return archive(file)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(file, &fields); err != nil {
		return nil, err
	}
	all := map[string][]float64{}
	for name, raw := range fields {
		var list []float64
		if err := json.Unmarshal(raw, &list); err != nil {
			var one float64
			if json.Unmarshal(raw, &one) != nil {
				continue // what a profiler adds for others
			}
			list = []float64{one}
		}
		all[name] = list
	}
	return all, nil
}

// mostBytes bounds what an array may take, far above any profile.
const mostBytes = 64 << 20

func archive(file []byte) (map[string][]float64, error) {
	z, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	all := map[string][]float64{}
	for _, entry := range z.File {
		r, err := entry.Open()
		if err != nil {
			return nil, fmt.Errorf("array %s: %w", entry.Name, err)
		}
		body, err := io.ReadAll(io.LimitReader(r, mostBytes))
		if err != nil {
			return nil, fmt.Errorf("array %s: %w", entry.Name, err)
		}
		if all[strings.TrimSuffix(entry.Name, ".npy")], err = array(body); err != nil {
			return nil, fmt.Errorf("array %s: %w", entry.Name, err)
		}
	}
	return all, nil
}

var (
	kinds  = regexp.MustCompile(`'descr': *'<(f8|f4|i8|i4)'`)
	shapes = regexp.MustCompile(`'shape': *\((\d*),?\)`)
)

// array reads one list in NumPy's format, versions 1 and 2.
func array(body []byte) ([]float64, error) {
	if len(body) < 12 || string(body[:6]) != "\x93NUMPY" {
		return nil, errors.New("not in NumPy's format")
	}
	start, length := 10, int(binary.LittleEndian.Uint16(body[8:]))
	if body[6] >= 2 {
		start, length = 12, int(binary.LittleEndian.Uint32(body[8:]))
	}
	if length > len(body)-start {
		return nil, errors.New("the header is cut off")
	}
	header, data := string(body[start:start+length]), body[start+length:]
	kind, shape := kinds.FindStringSubmatch(header), shapes.FindStringSubmatch(header)
	if kind == nil || shape == nil {
		return nil, fmt.Errorf("header %q: want a list of little-endian numbers", strings.TrimSpace(header))
	}
	count := 1 // of a bare number
	if shape[1] != "" {
		n, err := strconv.Atoi(shape[1])
		if err != nil || n > mostBytes {
			return nil, fmt.Errorf("shape %s", shape[0])
		}
		count = n
	}
	switch kind[1] {
	case "f8":
		return numbers[float64](data, count)
	case "f4":
		return numbers[float32](data, count)
	case "i8":
		return numbers[int64](data, count)
	default:
		return numbers[int32](data, count)
	}
}

func numbers[T float32 | float64 | int32 | int64](data []byte, count int) ([]float64, error) {
	var one T
	if count > len(data)/binary.Size(one) { // a header may promise anything
		return nil, fmt.Errorf("%d bytes for %d numbers", len(data), count)
	}
	raw := make([]T, count)
	if _, err := binary.Decode(data, binary.LittleEndian, raw); err != nil {
		return nil, fmt.Errorf("%d bytes for %d numbers", len(data), count)
	}
	all := make([]float64, count)
	for i, v := range raw {
		all[i] = float64(v)
	}
	return all, nil
}

// Model is the profile as a model: straight lines between what was measured, never
// falling with load.
func (p Profile) Model() (*Table, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	m := measured{cache: p.CacheTokens, prefill: line(p.Input, p.FirstToken, 1e-3)}
	longest := slices.Max(p.Input)
	columns := map[float64][2][]float64{}
	most := 1.0
	for i, context := range p.Context {
		if !(context > 0) {
			return nil, fmt.Errorf("decode data: a context of %v tokens", context)
		}
		n := p.Usage[i] * p.CacheTokens / context
		most, longest = max(most, n), max(longest, context)
		column := columns[context]
		column[0], column[1] = append(column[0], n), append(column[1], p.Token[i])
		columns[context] = column
	}
	for context, column := range columns {
		m.columns = append(m.columns, timesAt{context, line(column[0], column[1], 1e-3)})
	}
	slices.SortFunc(m.columns, func(a, b timesAt) int { return cmp.Compare(a.context, b.context) })
	return Tabulate(m, longest, most)
}

// point is a place of a line.
type point struct{ x, y float64 }

func line(x, y []float64, unit float64) []point {
	var all []point
	for i := range x {
		all = append(all, point{x[i], y[i] * unit})
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	return slices.CompactFunc(all, func(a, b point) bool { return a.x == b.x })
}

// at is a line's value; it goes on with its last slope and stays at its first value.
func at(l []point, x float64) float64 {
	i, _ := slices.BinarySearchFunc(l, x, func(p point, x float64) int { return cmp.Compare(p.x, x) })
	switch {
	case i == 0 || len(l) == 1:
		return l[0].y
	case i == len(l):
		i--
	}
	a, b := l[i-1], l[i]
	return a.y + (b.y-a.y)*(x-a.x)/(b.x-a.x)
}

type timesAt struct {
	context float64
	times   []point // by sequences
}

// measured is a model of a profile's points.
type measured struct {
	prefill []point
	columns []timesAt
	cache   float64
}

func (m measured) Prefill(tokens float64) float64 { return at(m.prefill, tokens) }

func (m measured) Token(n, context float64) float64 {
	between := make([]point, 0, len(m.columns))
	for _, c := range m.columns {
		between = append(between, point{c.context, at(c.times, n)})
	}
	return at(between, context)
}

func (m measured) Cache() float64 { return m.cache }

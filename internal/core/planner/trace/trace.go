// Package trace reads what requests came when, in the forms in which traces are
// published, makes some by formula, and changes their pace. It plays nothing.
package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is one of a trace.
type Request struct {
	At            float64 // seconds since the first
	Input, Output int32   // tokens
}

// Trace are requests by time, the first at 0.
type Trace []Request

// Read takes a trace in any of the published forms, which its first line tells:
// Azure's CSV (TIMESTAMP, ContextTokens, GeneratedTokens), BurstGPT's CSV (Timestamp,
// Request tokens, Response tokens), or Mooncake's JSON lines (timestamp in
// milliseconds, input_length, output_length).
func Read(from io.Reader) (Trace, error) {
	r := bufio.NewReaderSize(from, 1<<20)
	first, err := r.Peek(1)
	if err != nil {
		return nil, fmt.Errorf("read a trace: %w", err)
	}
	var t Trace
	if bytes.Equal(first, []byte("{")) {
		t, err = readLines(r)
	} else {
		t, err = readTable(r)
	}
	if err != nil {
		return nil, fmt.Errorf("read a trace: %w", err)
	}
	return t.begun()
}

// begun are requests in order, the first at 0.
func (t Trace) begun() (Trace, error) {
	if len(t) == 0 {
		return nil, errors.New("read a trace: it has no request")
	}
	slices.SortStableFunc(t, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	begin := t[0].At
	for i := range t {
		t[i].At -= begin
	}
	return t, nil
}

func readLines(r io.Reader) (Trace, error) {
	decoder := json.NewDecoder(r)
	var t Trace
	for {
		var row struct {
			Timestamp *float64 `json:"timestamp"`
			Input     int64    `json:"input_length"`
			Output    int64    `json:"output_length"`
		}
		err := decoder.Decode(&row)
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err == nil && row.Timestamp == nil {
			err = errors.New("no timestamp")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(t)+1, err)
		}
		t = t.add(*row.Timestamp/1e3, row.Input, row.Output)
	}
}

// add takes a request in; who answers at least says one token and a last one.
func (t Trace) add(at float64, input, output int64) Trace {
	const longest = 1 << 24
	return append(t, Request{At: at, Input: int32(min(max(1, input), longest)), Output: int32(min(max(2, output), longest))})
}

func readTable(r io.Reader) (Trace, error) {
	table := csv.NewReader(r)
	table.ReuseRecord = true
	header, err := table.Read()
	if err != nil {
		return nil, err
	}
	place := map[string]int{}
	for i, name := range header {
		place[strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))] = i
	}
	columns := func(names ...string) (at [3]int, ok bool) {
		for i, name := range names {
			if at[i], ok = place[name]; !ok {
				return at, false
			}
		}
		return at, true
	}
	at, azure := columns("timestamp", "contexttokens", "generatedtokens")
	if !azure {
		var ok bool
		if at, ok = columns("timestamp", "request tokens", "response tokens"); !ok {
			return nil, fmt.Errorf("columns %q are neither Azure's nor BurstGPT's", header)
		}
	}
	var t Trace
	for line := 2; ; line++ {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		when, err := moment(row[at[0]])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		input, err := strconv.ParseInt(row[at[1]], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		output, err := strconv.ParseInt(row[at[2]], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if !azure && output == 0 { // a request that failed
			continue
		}
		t = t.add(when, input, output)
	}
}

// moment reads seconds, or a date with a time.
func moment(text string) (float64, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(seconds) && !math.IsInf(seconds, 0) {
		return seconds, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999-07:00", time.RFC3339Nano} {
		if at, err := time.Parse(layout, text); err == nil {
			return float64(at.Unix()) + float64(at.Nanosecond())/1e9, nil
		}
	}
	return 0, fmt.Errorf("%q is neither seconds nor a date with a time", text)
}

// Length is when the last request comes.
func (t Trace) Length() float64 {
	if len(t) == 0 {
		return 0
	}
	return t[len(t)-1].At
}

// Rate is the mean number of requests a second.
func (t Trace) Rate() float64 {
	if t.Length() == 0 {
		return 0
	}
	return float64(len(t)) / t.Length()
}

// Means are the mean lengths.
func (t Trace) Means() (input, output float64) {
	for _, r := range t {
		input += float64(r.Input)
		output += float64(r.Output)
	}
	n := math.Max(1, float64(len(t)))
	return input / n, output / n
}

// Between is the part from one time to another, begun anew.
func (t Trace) Between(from, to float64) Trace {
	at := func(when float64) int {
		i, _ := slices.BinarySearchFunc(t, when, func(r Request, when float64) int { return cmp.Compare(r.At, when) })
		return i
	}
	part := slices.Clone(t[at(from):at(to)])
	for i := range part {
		part[i].At -= from
	}
	return part
}

// Multiply is the trace at a multiple of its rate: of every request so many copies,
// and one more with the chance of what is left, spread evenly over so many seconds.
func (t Trace) Multiply(rate, spread float64, chance *rand.Rand) Trace {
	out := make(Trace, 0, int(float64(len(t))*rate)+1)
	whole := math.Floor(rate)
	for _, r := range t {
		copies := int(whole)
		if chance.Float64() < rate-whole {
			copies++
		}
		for range copies {
			c := r
			c.At += chance.Float64() * spread
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	return out
}

// Repeat plays a trace again and again until a time.
func (t Trace) Repeat(until float64) Trace {
	length := t.Length()
	if length <= 0 {
		return t
	}
	out := make(Trace, 0, int(t.Rate()*until)+len(t))
	for begin := 0.0; begin < until; begin += length {
		for _, r := range t {
			if r.At += begin; r.At >= until {
				break
			}
			out = append(out, r)
		}
	}
	return out
}

// Stretch is the trace in another time: twice as long at 2.
func (t Trace) Stretch(by float64) Trace {
	out := slices.Clone(t)
	for i := range out {
		out[i].At *= by
	}
	return out
}

// Shape is a rate by time, in requests a second.
type Shape func(at float64) float64

// Poisson is a constant rate.
func Poisson(rate float64) Shape { return func(float64) float64 { return rate } }

// Sine goes from low to high and back once a period, low first.
func Sine(low, high, period float64) Shape {
	return func(at float64) float64 {
		return (low+high)/2 - (high-low)/2*math.Cos(2*math.Pi*at/period)
	}
}

// Step is high between two times and low before and after.
func Step(low, high, from, to float64) Shape {
	return func(at float64) float64 {
		if at >= from && at < to {
			return high
		}
		return low
	}
}

// Generate is a trace of equal requests that come by chance at a rate.
func Generate(s Shape, length float64, input, output int32, chance *rand.Rand) Trace {
	var t Trace
	for at := 0.0; ; {
		at += chance.ExpFloat64() / math.Max(s(at), 1e-6)
		if at >= length {
			return t
		}
		t = append(t, Request{At: at, Input: input, Output: output})
	}
}

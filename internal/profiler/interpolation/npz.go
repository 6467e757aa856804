package interpolation

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// array is one entry of a NumPy archive.
type array struct {
	name   string
	floats []float64
	ints   []int64 // in place of floats
}

// NPZ is the profile as the planner's two archives.
func (d Data) NPZ() (prefill, decode []byte, err error) {
	prefill, err = archive([]array{
		{name: "prefill_isl", floats: d.Prefill.ISL},
		{name: "prefill_ttft", floats: d.Prefill.TTFT},
		{name: "prefill_thpt_per_gpu", floats: d.Prefill.Throughput},
	})
	if err != nil {
		return nil, nil, err
	}
	decode, err = archive([]array{
		{name: "x_kv_usage", floats: d.Decode.Usage},
		{name: "y_context_length", floats: d.Decode.Context},
		{name: "z_itl", floats: d.Decode.ITL},
		{name: "z_thpt_per_gpu", floats: d.Decode.Throughput},
		{name: "max_kv_tokens", ints: []int64{int64(d.Decode.MaxTokens)}},
	})
	return prefill, decode, err
}

func archive(arrays []array) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, a := range arrays {
		f, err := w.Create(a.name + ".npy")
		if err != nil {
			return nil, fmt.Errorf("write array %s: %w", a.name, err)
		}
		if _, err := f.Write(a.npy()); err != nil {
			return nil, fmt.Errorf("write array %s: %w", a.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write archive: %w", err)
	}
	return out.Bytes(), nil
}

// npy is the array in version 1.0 of NumPy's format: magic, a header padded to
// 64 bytes, then little-endian elements.
func (a array) npy() []byte {
	kind, n := "<f8", len(a.floats)
	if a.ints != nil {
		kind, n = "<i8", len(a.ints)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", kind, n)
	const preamble = 10 // magic, version and length
	header += strings.Repeat(" ", 63-(preamble+len(header))%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, v := range a.floats {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	for _, v := range a.ints {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
	}
	return out
}

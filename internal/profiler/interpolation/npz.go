package interpolation

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// array is one entry of a NumPy archive.
type array struct {
	name   string
	values any // []float64 or []int64
}

// NPZ is the profile as the planner's two archives.
func (d Data) NPZ() (prefill, decode []byte, err error) {
	prefill, err = archive([]array{
		{name: "prefill_isl", values: d.Prefill.ISL},
		{name: "prefill_ttft", values: d.Prefill.TTFT},
		{name: "prefill_thpt_per_gpu", values: d.Prefill.Throughput},
	})
	if err != nil {
		return nil, nil, err
	}
	decode, err = archive([]array{
		{name: "x_kv_usage", values: d.Decode.Usage},
		{name: "y_context_length", values: d.Decode.Context},
		{name: "z_itl", values: d.Decode.ITL},
		{name: "z_thpt_per_gpu", values: d.Decode.Throughput},
		{name: "max_kv_tokens", values: []int64{int64(d.Decode.MaxTokens)}},
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
		body, err := a.npy()
		if err == nil {
			_, err = f.Write(body)
		}
		if err != nil {
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
func (a array) npy() ([]byte, error) {
	kind := "<f8"
	if _, ok := a.values.([]int64); ok {
		kind = "<i8"
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", kind, binary.Size(a.values)/8)
	const preamble = 10 // magic, version and length
	header += strings.Repeat(" ", 63-(preamble+len(header))%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return binary.Append(append(out, header...), binary.LittleEndian, a.values)
}

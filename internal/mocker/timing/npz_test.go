package timing

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// npy writes an array as NumPy does.
func npy(shape string, values ...float64) []byte {
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }", shape)
	for (10+len(header)+1)%64 != 0 {
		header += " "
	}
	header += "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	return out
}

func archive(t *testing.T, file string, entries map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := zip.NewWriter(out)
	for name, body := range entries {
		f, err := w.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestProfileDataIsReadInEveryForm(t *testing.T) {
	dir := t.TempDir()
	grid := filepath.Join(dir, "grid.npz")
	archive(t, grid, map[string][]byte{
		"prefill_isl": npy("2,", 1000, 3000), "prefill_ttft_ms": npy("2,", 100, 300),
		"decode_active_kv_tokens": npy("2,", 0, 10000), "decode_context_length": npy("2,", 1000, 2000),
		"decode_itl": npy("2, 2", 10, 20, 20, 40),
	})
	planner := filepath.Join(dir, "planner")
	archive(t, filepath.Join(planner, "selected_prefill_interpolation", "raw_data.npz"), map[string][]byte{
		"prefill_isl": npy("2,", 1000, 3000), "prefill_ttft": npy("2,", 100, 300),
	})
	archive(t, filepath.Join(planner, "selected_decode_interpolation", "raw_data.npz"), map[string][]byte{
		"x_kv_usage": npy("4,", 0, 1, 0, 1), "y_context_length": npy("4,", 1000, 1000, 2000, 2000),
		"z_itl": npy("4,", 10, 20, 20, 40), "max_kv_tokens": npy("1,", 10000),
	})
	for name, path := range map[string]string{"the mock's archive": grid, "the planner's archives": planner, "a ConfigMap": folder(t, prefillData, decodeData)} {
		p, err := Load(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.Prefill([]Part{{Fresh: 2000}}, 0); got != 200*time.Millisecond {
			t.Errorf("%s: prefill of 2000 tokens takes %v, want 200ms", name, got)
		}
		if got := p.Decode(1, 5000, 1500); got != 22500*time.Microsecond {
			t.Errorf("%s: a step takes %v, want 22.5ms", name, got)
		}
	}
}

func TestBrokenArraysAreRefused(t *testing.T) {
	whole := npy("3,", 1, 2, 3)
	for name, body := range map[string][]byte{
		"nothing":       nil,
		"no magic":      []byte("0123456789abcdef"),
		"cut off":       whole[:len(whole)-1],
		"only a header": whole[:20],
		"huge shape":    npy("999999999, 999999999"),
		"no numbers":    []byte("\x93NUMPY\x01\x00\x10\x00{'descr': 'O'}  "),
	} {
		if values, err := parseArray(body); err == nil {
			t.Errorf("%s was read as %v", name, values)
		}
	}
	if values, err := parseArray(whole); err != nil || len(values) != 3 {
		t.Errorf("a whole array: %v, %v", values, err)
	}
}

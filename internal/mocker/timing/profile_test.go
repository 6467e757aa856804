package timing

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func folder(t *testing.T, prefill, decode string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"prefill_raw_data.json": prefill, "decode_raw_data.json": decode} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	prefillData = `{"prefill_isl":[3000,1000],"prefill_ttft":[300,100],"prefill_thpt_per_gpu":[1,1]}`
	decodeData  = `{"x_kv_usage":[0,1,0,1],"y_context_length":[1000,1000,2000,2000],"z_itl":[10,20,20,40],"max_kv_tokens":10000}`
)

func TestProfileInterpolates(t *testing.T) {
	p, err := Load(folder(t, prefillData, decodeData))
	if err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	for tokens, want := range map[int]time.Duration{1000: 100 * ms, 2000: 200 * ms, 4000: 400 * ms} {
		if got := p.Prefill([]Part{{Fresh: tokens}}, 0); got != want {
			t.Errorf("prefill of %d tokens takes %v, want %v", tokens, got, want)
		}
	}
	for name, c := range map[string]struct {
		tokens int
		length float64
		want   time.Duration
	}{
		"a measured point":           {0, 1000, 10 * ms},
		"between usages":             {5000, 1000, 15 * ms},
		"between usages and lengths": {5000, 1500, 22500 * time.Microsecond},
		"beyond the last length":     {0, 3000, 30 * ms},
		"never negative":             {0, -5000, 0},
	} {
		if got := p.Decode(1, c.tokens, c.length); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestLoadRefusesBrokenData(t *testing.T) {
	for name, c := range map[string][2]string{
		"no JSON":          {"x", decodeData},
		"uneven lists":     {`{"prefill_isl":[1],"prefill_ttft":[]}`, decodeData},
		"no decode points": {prefillData, `{"max_kv_tokens":1}`},
		"no cache size":    {prefillData, `{"x_kv_usage":[0],"y_context_length":[1],"z_itl":[1]}`},
	} {
		if _, err := Load(folder(t, c[0], c[1])); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("an empty folder was accepted")
	}
}

package interpolation

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLengths(t *testing.T) {
	for name, test := range map[string]struct {
		context, points int
		want            []int
	}{
		"the planner's steps":             {4612, 4, []int{100, 1100, 2100, 3100}},
		"a remainder gives a point more":  {1613, 3, []int{100, 433, 766, 1099}},
		"a short context still has three": {256, 16, []int{64, 128, 256}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Lengths(test.context, test.points)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoadsFitTheCacheAndShareTheWork(t *testing.T) {
	for _, context := range []int{64, 1024, 4096, 131072} {
		for _, points := range []int{2, 6, 13} {
			for _, tokens := range []int{4096, 100_000, 5_000_000} {
				for _, ranks := range []int{1, 2, 8} {
					for _, l := range Loads(context, points, tokens, ranks) {
						if l.Sequences%ranks != 0 || l.Sequences < ranks {
							t.Fatalf("%d sequences over %d ranks", l.Sequences, ranks)
						}
						if l.Context*l.Sequences > tokens {
							t.Fatalf("%+v does not fit %d tokens", l, tokens)
						}
						if l.Context > context {
							t.Fatalf("%+v is beyond a context of %d", l, context)
						}
					}
				}
			}
		}
	}
}

func TestSequencesReachBothEnds(t *testing.T) {
	got := sequences(100, 6, 4)
	if got[0] != 4 || got[len(got)-1] != 100 || len(got) != 6 {
		t.Errorf("got %v", got)
	}
	if got := sequences(3, 6, 4); got != nil {
		t.Errorf("too small a cache gives %v", got)
	}
}

var timer = Timer{
	Prefill:     func(n int) float64 { return 10 + float64(n)/100 },
	Decode:      func(b, c int) float64 { return 5 + float64(b*c)/1e5 },
	PrefillGPUs: 2, DecodeGPUs: 4, MaxTokens: 100_000, Context: 8192,
}

func TestTabulate(t *testing.T) {
	d, err := Tabulate(timer, 16, 6)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.Prefill.Throughput[0], 100/11.0*1000/2; math.Abs(got-want) > 1e-9 {
		t.Errorf("prefill throughput %g, want %g", got, want)
	}
	for i, u := range d.Decode.Usage {
		if u <= 0 || u > 1 {
			t.Errorf("usage %g at %d", u, i)
		}
	}
	prefill, decode, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"prefill_isl":[`, `"prefill_ttft":[`, `"prefill_thpt_per_gpu":[`} {
		if !strings.Contains(prefill, key) {
			t.Errorf("no %s in %s", key, prefill)
		}
	}
	for _, key := range []string{`"x_kv_usage":[`, `"y_context_length":[`, `"z_itl":[`, `"z_thpt_per_gpu":[`, `"max_kv_tokens":100000}`} {
		if !strings.Contains(decode, key) {
			t.Errorf("no %s in %s", key, decode)
		}
	}
}

func TestTabulateRefusesACacheForNothing(t *testing.T) {
	small := timer
	small.MaxTokens = 10
	if _, err := Tabulate(small, 16, 6); err == nil {
		t.Error("no error")
	}
}

func TestNPZHoldsTheNumbersInNumPysFormat(t *testing.T) {
	d, err := Tabulate(timer, 16, 6)
	if err != nil {
		t.Fatal(err)
	}
	_, decode, err := d.NPZ()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(decode), int64(len(decode)))
	if err != nil {
		t.Fatal(err)
	}
	arrays := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		length := int(binary.LittleEndian.Uint16(body[8:10]))
		if !bytes.HasPrefix(body, []byte("\x93NUMPY\x01\x00")) || (10+length)%64 != 0 || body[9+length] != '\n' {
			t.Errorf("%s: header %q", f.Name, body[:10+length])
		}
		arrays[f.Name] = body[10+length:]
	}
	itl := arrays["z_itl.npy"]
	if len(itl) != 8*len(d.Decode.ITL) {
		t.Fatalf("%d bytes for %d numbers", len(itl), len(d.Decode.ITL))
	}
	if got := math.Float64frombits(binary.LittleEndian.Uint64(itl)); got != d.Decode.ITL[0] {
		t.Errorf("first is %g, want %g", got, d.Decode.ITL[0])
	}
	if got := binary.LittleEndian.Uint64(arrays["max_kv_tokens.npy"]); got != 100_000 {
		t.Errorf("max_kv_tokens is %d", got)
	}
}

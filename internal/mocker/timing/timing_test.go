package timing

import (
	"testing"
	"time"
)

func TestPolynomial(t *testing.T) {
	var p Polynomial
	if got := p.Prefill(nil, 0); got != 0 {
		t.Errorf("a fully cached prompt takes %v, want nothing", got)
	}
	if got := p.Prefill([]Part{{Fresh: 1000}}, 0).Round(time.Microsecond); got != 32106*time.Microsecond {
		t.Errorf("prefill of 1000 tokens takes %v, want 32.106ms", got)
	}
	if got := p.Decode(1, 0, 0); got != 5740*time.Microsecond {
		t.Errorf("an idle decode step takes %v, want 5.74ms", got)
	}
}

func TestDecodeNeverGetsFasterUnderLoad(t *testing.T) {
	var p Polynomial
	before := time.Duration(0)
	for tokens := 0; tokens <= 1<<20; tokens += 512 {
		now := p.Decode(1, tokens, 100)
		if now < before || now <= 0 {
			t.Fatalf("decode at %d tokens takes %v, at fewer %v", tokens, now, before)
		}
		before = now
	}
}

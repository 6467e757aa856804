package search

import (
	"fmt"
	"sort"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
)

// remedies says what would meet a goal that nothing met, the smallest change
// first. Each line was searched, not supposed.
func remedies(o *Outcome) []string {
	p := o.Problem
	best := o.Best()
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }

	ttft, itl := max(p.Goal.TTFT, best.TTFT.Value), max(p.Goal.ITL, best.ITL.Value)
	late, slow := ttft > p.Goal.TTFT || itl > p.Goal.ITL, p.Goal.RequestRate > 0 && best.Rate < p.Goal.RequestRate
	switch {
	case late && slow:
		add("targets of ttft %.4g ms, itl %.4g ms and %.4g requests a second would be met by %s", ttft, itl, best.Rate, best)
	case late:
		add("targets of ttft %.4g ms and itl %.4g ms would be met by %s", ttft, itl, best)
	case slow:
		add("%.4g requests a second would be met within the budget by %s", best.Rate, best)
	}
	if slow {
		q := p
		q.Budget = 0
		if c, ok := meets(q); ok {
			add("a budget of %d GPUs would meet it, with %s", c.GPUs, c)
		}
	}
	if c, n, ok := largerEngines(p); ok {
		add("engines of up to %d GPUs would meet it, with %s", n, c)
	}
	if isl := shorterPrompt(p, best); isl > 0 {
		add("prompts of up to %d tokens would meet it with %s", isl, best)
	}
	for _, gpu := range p.Catalog.GPUs {
		if weaker(gpu, p.GPU) {
			continue
		}
		q := p
		q.GPU = gpu
		if c, ok := meets(q); ok {
			add("%s GPUs would meet it, with %s", gpu.Name, c)
		}
	}
	return all
}

// weaker reports whether a GPU is nowhere ahead of another one, or the same.
func weaker(a, b perfmodel.GPU) bool {
	for format, speed := range a.Teraflops {
		if speed > b.Teraflops[format] {
			return false
		}
	}
	return a.Memory <= b.Memory && a.Bandwidth <= b.Bandwidth && a.Link <= b.Link && a.Fabric <= b.Fabric
}

func meets(p Problem) (Candidate, bool) {
	p.plain = true
	o, err := solve(p)
	if err != nil || !o.Best().Met() {
		return Candidate{}, false
	}
	return o.Best(), true
}

// largerEngines tries more GPUs for one engine than the request allows, as far
// as the budget goes.
func largerEngines(p Problem) (Candidate, int, bool) {
	for n := p.MaxGPUs * 2; n <= 64 && (p.most() == 0 || n <= p.most()); n *= 2 {
		q := p
		q.MinGPUs, q.MaxGPUs = max(p.MinGPUs, n/8), n
		if c, ok := meets(q); ok {
			return c, n, true
		}
	}
	return Candidate{}, 0, false
}

// shorterPrompt is the longest prompt with which a candidate's layouts meet the
// goal; zero if none does.
func shorterPrompt(p Problem, c Candidate) int {
	keeps := func(isl int) bool {
		q := p
		q.Goal.ISL = isl
		decode, reason, err := q.engine(c.Decode.Layout)
		if reason != "" || err != nil {
			return false
		}
		w := guessed
		if c.Prefill != nil {
			w = decoding
		}
		s, ok := q.operate(decode, w, 0)
		if !ok {
			return false
		}
		if c.Mode == config.Aggregated {
			return s.ttft.Value <= p.Goal.TTFT && s.itl.Value <= p.Goal.ITL && p.Goal.RequestRate == 0
		}
		prefill, reason, err := q.engine(c.Prefill.Layout)
		if reason != "" || err != nil {
			return false
		}
		joined, ok := q.pair(prefill, s)
		return ok && q.judge(joined).Met()
	}
	shorter := sort.Search(p.Goal.ISL, func(i int) bool { return keeps(p.Goal.ISL - i) })
	isl := p.Goal.ISL - shorter
	// A promise about a handful of tokens helps nobody.
	if isl < 32 {
		return 0
	}
	return isl
}

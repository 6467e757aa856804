package observation

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Engines are what engines of a role tell of their load together. The zero value is that
// of nobody who tells.
type Engines struct {
	// Running and Waiting are requests in batches and in line, of Told engines. Asked is how
	// many there are.
	Running, Waiting float64
	Told, Asked      int
	// cache is the sum of the shares of the caches in use, of so many engines.
	cache  float64
	caches int
}

// Plus is what both tell.
func (e Engines) Plus(other Engines) Engines {
	return Engines{
		Running: e.Running + other.Running, Waiting: e.Waiting + other.Waiting, Told: e.Told + other.Told, Asked: e.Asked + other.Asked,
		cache: e.cache + other.cache, caches: e.caches + other.caches,
	}
}

// partly says that some tell and others do not: those may be the ones that are busy.
func (e Engines) partly() bool { return e.Told > 0 && e.Told < e.Asked }

// Cache is the share of their caches of keys and values in use; told is false where no
// engine says.
func (e Engines) Cache() (share float64, told bool) {
	return e.cache / float64(max(1, e.caches)), e.caches > 0
}

// What engines call their load. Of several names the first that is there counts: releases of
// an engine tell the same under an older name as well, and Dynamo tells it beside them.
var (
	runningNames = []string{"vllm:num_requests_running", "sglang:num_running_reqs", "trtllm_num_requests_running"}
	waitingNames = []string{"vllm:num_requests_waiting", "sglang:num_queue_reqs", "trtllm_num_requests_waiting"}
	cacheNames   = []string{
		"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage", "trtllm_kv_cache_utilization",
		"dynamo_component_gpu_cache_usage_percent", "dynamo_component_kvstats_gpu_cache_usage_percent",
	}
)

// pageLimit is how much of a page may be looked at: three series of hundreds of ranks. To be
// parsed it takes its size tenfold, and pages of many engines are read at once.
const pageLimit = 64 << 10

// ParseEngine reads what one engine tells of its load, in Prometheus' text format. Pages of
// engines are long, and are read every few seconds: nothing else is looked at.
func ParseEngine(text io.Reader) (Engines, error) {
	page, err := looked(text)
	if err != nil {
		return Engines{}, fmt.Errorf("read metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return Engines{}, fmt.Errorf("read metrics: %w", err)
	}
	var e Engines
	e.Running, _, _ = first(families, runningNames)
	waiting, _, told := first(families, waitingNames)
	if told {
		e.Waiting, e.Told = waiting, 1
	}
	if sum, ranks, told := first(families, cacheNames); told {
		e.cache, e.caches = min(1, sum/float64(ranks)), 1
	}
	return e, nil
}

// looked are the lines of a page that are looked at. Others may be of any length: engines name
// hundreds of adapters in a label.
func looked(text io.Reader) (*bytes.Buffer, error) {
	known := map[string]bool{}
	for _, name := range slices.Concat(runningNames, waitingNames, cacheNames) {
		known[name] = true
	}
	page, lines := &bytes.Buffer{}, bufio.NewReader(text)
	for begins, wanted := true, false; ; {
		part, more, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			return page, nil
		}
		if err != nil {
			return nil, err
		}
		if begins {
			wanted = known[string(part[:max(0, bytes.IndexAny(part, "{ \t"))])]
		}
		if begins = !more; !wanted {
			continue
		}
		page.Write(part)
		if begins {
			page.WriteByte('\n')
		}
		if page.Len() > pageLimit {
			return nil, fmt.Errorf("load of more than %d bytes", pageLimit)
		}
	}
}

// first is the sum over the ranks of the first series that is there, and how many those are.
func first(families map[string]*dto.MetricFamily, names []string) (sum float64, ranks int, told bool) {
	for _, name := range names {
		if family := families[name]; family != nil {
			sum, ranks = ofRanks(family)
			return sum, ranks, true
		}
	}
	return 0, 0, false
}

// shards are the labels of processes that hold parts of one model, and tell the same: those
// alone that have a batch of their own add up.
var shards = map[string]bool{"tp_rank": true, "pp_rank": true, "moe_ep_rank": true}

// mostOfOne is more than one rank ever has of anything: whoever tells of more is not believed.
const mostOfOne = 1e9

// ofRanks is the sum of a series over those who have a batch of their own.
func ofRanks(family *dto.MetricFamily) (sum float64, ranks int) {
	most := map[string]float64{}
	for _, m := range family.GetMetric() {
		var whose strings.Builder
		for _, l := range m.GetLabel() {
			if !shards[l.GetName()] {
				fmt.Fprintf(&whose, "%q=%q,", l.GetName(), l.GetValue())
			}
		}
		v := m.GetUntyped().GetValue()
		if !(v > 0) || v > mostOfOne {
			v = 0
		}
		most[whose.String()] = max(most[whose.String()], v)
	}
	for _, whose := range slices.Sorted(maps.Keys(most)) {
		sum += most[whose]
	}
	return sum, len(most)
}

// Package fit finds the constants of the performance model from measurements
// and says how far off they are on measurements they were not fitted on. It is
// arithmetic on values: reading and writing files is the caller's.
package fit

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Row is one measured run of a deployment under a load of equal requests.
type Row struct {
	ID        string
	Group     Group
	Load      perfmodel.Load
	Estimator *perfmodel.Estimator
	// Pools is set where prompts and answers have engines of their own; Estimator
	// is then that of the answers.
	Pools   *perfmodel.Pools
	Token   float64 // milliseconds per output token
	First   float64 // milliseconds to the first token
	Crowded bool    // more requests were offered than fit, so some waited for others
	// Waiting is how many more users there were than places.
	Waiting int
	// Gathering is for how many steps prompts were kept waiting.
	Gathering gathering
	// Told reports whether it is known how requests came.
	Told bool
	// Drafted means that the run may have used speculative decoding: its table has
	// runs with and without it under the same columns.
	Drafted bool
}

// GPUs of the deployment.
func (r Row) GPUs() int {
	if r.Pools != nil {
		return r.Pools.GPUs()
	}
	return r.Estimator.Setup().Parallel.GPUs()
}

// Rate is how many requests a second were served, which follows from how many
// there were at a time and how long each took.
func (r Row) Rate() float64 {
	return 1e3 * float64(r.Load.Concurrency+r.Waiting) / (r.First + float64(r.Load.Output-1)*r.Token)
}

// Group is what rows are split by into those to fit on and those to check on.
type Group struct {
	Engine  perfmodel.Engine
	Model   string
	GPU     string
	Weights perfmodel.Precision
	Mixture bool
	// Apart is of disaggregated deployments.
	Apart bool
}

func (g Group) String() string {
	text := fmt.Sprintf("%s %s %s %s", g.Engine, g.Model, g.GPU, g.Weights)
	if g.Apart {
		text += " disaggregated"
	}
	return text
}

// Kind is dense or mixture.
func (g Group) Kind() string {
	if g.Mixture {
		return "mixture"
	}
	return "dense"
}

// Part is the kind, and whether the deployment is disaggregated.
func (g Group) Part() string {
	if g.Apart {
		return g.Kind() + ", disaggregated"
	}
	return g.Kind()
}

// LeftOut counts rows that were not used, by reason.
type LeftOut struct {
	Reason string
	Rows   int
}

// columns reads a line by column name.
type columns struct {
	index map[string]int
	line  []string
}

func (c columns) text(name string) string {
	i, ok := c.index[name]
	if !ok || i >= len(c.line) {
		return ""
	}
	return strings.TrimSpace(c.line[i])
}

func (c columns) number(name string) float64 {
	f, err := strconv.ParseFloat(c.text(name), 64)
	if err != nil {
		return 0
	}
	return f
}

func (c columns) int(name string) int { return int(c.number(name)) }

// Read takes the rows whose architecture and GPU are known, and whose deployment
// the table describes: disaggregated ones name the workers of both pools.
func Read(table io.Reader, catalog perfmodel.Catalog) ([]Row, []LeftOut, error) {
	lines, err := csv.NewReader(table).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("read measurements: %w", err)
	}
	if len(lines) == 0 {
		return nil, nil, fmt.Errorf("read measurements: no header")
	}
	index := map[string]int{}
	for i, name := range lines[0] {
		index[name] = i
	}
	var rows []Row
	reasons := map[string]int{}
	seen := map[string]bool{}
	most := map[string]int{}
	for _, line := range lines[1:] {
		c := columns{index, line}
		most[c.sweep()] = max(most[c.sweep()], c.int("decode_batch_size"))
	}
	for _, line := range lines[1:] {
		c := columns{index, line}
		row, reason := read(c, catalog, most[c.sweep()])
		if reason == "" {
			key := row.key()
			if seen[key] {
				reason = "the same measurement is in the table already"
			}
			seen[key] = true
		}
		if reason != "" {
			reasons[reason]++
			continue
		}
		rows = append(rows, row)
	}
	var left []LeftOut
	for reason, n := range reasons {
		left = append(left, LeftOut{Reason: reason, Rows: n})
	}
	slices.SortFunc(left, func(a, b LeftOut) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Reason, b.Reason))
	})
	return rows, left, nil
}

var formats = map[string]perfmodel.Precision{
	"": perfmodel.BF16, "bf16": perfmodel.BF16, "float16": perfmodel.BF16, "bfloat16": perfmodel.BF16,
	"fp8": perfmodel.FP8, "fp8_block": perfmodel.FP8, "fp8_static": perfmodel.FP8, "fp8_ootb": perfmodel.FP8,
	"nvfp4": perfmodel.FP4, "int4_wo": perfmodel.INT4, "w4a16_mxfp4": perfmodel.MXFP4,
}

// key is the same for the same measurement: the table has some several times.
func (r Row) key() string {
	return fmt.Sprint(r.Group, r.deployment(), r.Load, r.Token, r.First)
}

// read turns a line into a row, or says why not. Of the disaggregated runs of one sweep,
// most is the largest batch.
func read(c columns, catalog perfmodel.Catalog, most int) (Row, string) {
	apart := c.text("mode") == "disagg"
	if mode := c.text("mode"); mode != "agg" && !apart {
		return Row{}, "neither aggregated nor disaggregated: " + mode
	}
	if apart && c.int("decode_num_workers") < 1 {
		return Row{}, "disaggregated, and neither the number of workers nor their batches are named"
	}
	model, err := catalog.Model(c.text("model_path"))
	if err != nil {
		return Row{}, "architecture not known: " + c.text("model_path")
	}
	gpu, err := catalog.GPU(c.text("system"))
	if err != nil {
		return Row{}, "GPU not known: " + c.text("system")
	}
	gemm, ok := formats[c.text("gemm_quant_mode")]
	moe, ok2 := formats[c.text("moe_quant_mode")]
	if !ok || !ok2 {
		return Row{}, "number format not known: " + c.text("gemm_quant_mode") + "/" + c.text("moe_quant_mode")
	}
	engine := perfmodel.Engine(c.text("backend"))
	quantisation := quantisation(model, gemm, moe)
	source := sourceOf(c)
	if source.unsaid {
		return Row{}, "how many users there were is not said"
	}
	if model.Mixture() && source.public && moe != perfmodel.BF16 {
		quantisation.Cache = perfmodel.FP8
	}
	if !model.Mixture() && engine != perfmodel.SGLang && slices.Contains(withCache, c.text("gemm_quant_mode")) {
		quantisation.Cache = perfmodel.FP8
	}
	token, first := c.number("silicon_tpot_ms"), c.number("silicon_ttft_ms")
	input, output := c.int("isl"), c.int("osl")
	if token <= 0 || input <= 0 || output <= 1 {
		return Row{}, "no time per token, or no lengths"
	}
	if !apart && first > float64(output)*token {
		return Row{}, "overloaded: requests waited longer than they were served, so the batch is not known"
	}
	setup := perfmodel.Setup{Model: model, GPU: gpu, Engine: engine, Quantisation: quantisation}
	row := Row{
		ID: c.text("id"), Token: token, First: first, Told: source.told, Waiting: source.waiting, Drafted: source.drafts(engine, model.Name, gpu.Generation),
		Load:  perfmodel.Load{Input: input, Output: output, Arrival: source.arrival},
		Group: Group{Engine: engine, Model: model.Name, GPU: gpu.Name, Weights: moe, Mixture: model.Mixture(), Apart: apart},
	}
	if apart {
		reason := row.pools(c, setup, catalog, source.places(c, most))
		return row, reason
	}
	parallel, batch, reason := layout(c)
	if reason != "" {
		return Row{}, reason
	}
	setup.Parallel = parallel
	setup.Fallback = source.public && fallsBack(setup)
	if row.Estimator, err = catalog.Estimator(setup); err != nil {
		return Row{}, "layout the model does not allow: " + parallel.String()
	}
	if most := row.Estimator.MaxConcurrency(input, output) / max(1, parallel.DP); most > 0 {
		row.Crowded = batch > most
		batch = min(batch, most)
	}
	row.Load.Concurrency = batch * max(1, parallel.DP)
	if source.public {
		row.Gathering = gatheringOf(c, row.Estimator.Setup())
	}
	return row, ""
}

// pools reads both sides of a disaggregated run. Sizes are those of one worker, the
// batch is that of one attention rank of one decode worker, and all of them
// together are the requests at a time. Those for which a decode worker has no place wait
// for their first token; none means that there are places for all.
func (r *Row) pools(c columns, setup perfmodel.Setup, catalog perfmodel.Catalog, places int) string {
	side := func(name string) (*perfmodel.Estimator, int, string) {
		s := setup
		s.Pool = true
		s.Parallel = perfmodel.Parallel{
			TP: max(1, c.int(name+"_tp_size")), PP: max(1, c.int(name+"_pp_size")),
			DP: max(1, c.int(name+"_attention_dp_size")), EP: max(1, c.int(name+"_moe_ep_size")),
		}
		if name == "decode" {
			s.MaxSequences = places
			if c.ranked() {
				s.Parallel.TP, s.Parallel.DP = 1, s.Parallel.TP
			}
		} else {
			s = prefillRecipe(c, s)
		}
		e, err := catalog.Estimator(s)
		if err != nil {
			return nil, 0, "layout the model does not allow: " + s.Parallel.String()
		}
		return e, max(1, c.int(name+"_num_workers")), ""
	}
	prefill, prefills, reason := side("prefill")
	if reason != "" {
		return reason
	}
	decode, decodes, reason := side("decode")
	if reason != "" {
		return reason
	}
	r.Pools = &perfmodel.Pools{Prefill: prefill, Decode: decode, Prefills: prefills, Decodes: decodes}
	r.Estimator = decode
	r.Gathering = decodeGathering(decode.Setup())
	r.Load.Concurrency = decodes * max(1, c.int("decode_attention_dp_size")) * max(1, c.int("decode_batch_size"))
	if m := concurrency.FindStringSubmatch(c.text("silicon_data_source")); m != nil {
		r.Load.Concurrency, _ = strconv.Atoi(m[1])
	}
	return ""
}

// withCache are the formats of checkpoints that come with scales for a cache of 8
// bits. TensorRT-LLM takes that from the checkpoint, the runs with vLLM asked for
// it: more requests were served at once than fit otherwise. Formats with scales
// by block come without. SGLang kept 16 bits; of mixtures the source tells.
var withCache = []string{"fp8", "nvfp4"}

// quantisation corrects what the table says by what the engines do: gpt-oss has
// 4-bit experts only, and a checkpoint with 4-bit integers keeps the rest in 16.
func quantisation(m perfmodel.Model, gemm, moe perfmodel.Precision) perfmodel.Quantisation {
	switch {
	case m.Published.Experts == perfmodel.MXFP4:
		return m.Published
	case gemm == perfmodel.INT4:
		return perfmodel.Quantisation{Weights: perfmodel.BF16, Experts: perfmodel.INT4}
	case m.Mixture():
		return perfmodel.Quantisation{Weights: gemm, Experts: moe}
	}
	return perfmodel.Quantisation{Weights: gemm}
}

var concurrency = regexp.MustCompile(`silicon_concurrency=(\d+)`)

// users are all requests at a time.
func users(c columns) int {
	if m := concurrency.FindStringSubmatch(c.text("silicon_data_source")); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return c.int("batch_size") * max(1, c.int("attention_dp_size"))
}

// layout reads the parallel sizes and the batch of an attention rank. The table
// was put together from several exports. One of them multiplied sizes: a run on
// n GPUs with n-fold expert parallelism has n·n in its size column, and n in
// both expert columns, or all of it in the last one.
func layout(c columns) (perfmodel.Parallel, int, string) {
	tp, dp, pp := max(1, c.int("tp_size")), max(1, c.int("attention_dp_size")), max(1, c.int("pp_size"))
	slices, ep := max(1, c.int("moe_tp_size")), max(1, c.int("moe_ep_size"))
	batch := c.int("batch_size")
	all := users(c)
	p := perfmodel.Parallel{TP: tp, PP: pp, DP: dp, EP: ep}
	switch {
	case slices == ep && ep > 1 && tp*dp == ep*slices && c.text("attention_dp_size") != "":
		p = perfmodel.Parallel{TP: ep, PP: pp, EP: ep}
		if dp > 1 {
			p.TP, p.DP = 1, ep
		}
		batch = (all + max(1, p.DP) - 1) / max(1, p.DP)
	case tp == dp && tp > 1 && ep == tp*dp:
		p = perfmodel.Parallel{TP: tp, PP: pp, EP: tp}
		batch = all
	case c.text("attention_dp_size") == "" && slices*ep > tp:
		p.DP = slices * ep / tp
		batch = (batch + p.DP - 1) / p.DP
	}
	if batch < 1 {
		return p, 0, "no batch size"
	}
	return p, batch, ""
}

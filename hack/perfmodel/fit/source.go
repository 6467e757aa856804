package fit

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// source is where rows of the table come from. How requests came is a property of
// the load generator, so it is told by source, and so is what else a source leaves
// out.
type source struct {
	arrival perfmodel.Arrival
	told    bool
	// waiting is how many users there were beside those that the batch names.
	waiting int
	// mixed means that runs with and without speculative decoding are listed alike.
	mixed bool
	// booked is of disaggregated deployments.
	booked overbooking
	// public is of the public benchmark, whose mixtures kept their cache in 8 bits.
	public bool
	// unsaid means that the source does not say how many users there were.
	unsaid bool
}

// overbooking is which runs of a dump had more users than a decode worker had places.
type overbooking int

const (
	unknown  overbooking = iota
	topmost              // the run with most users of a sweep
	everyone             // every run: each number of users had places of its own
	exact                // none: each number of users had as many places
)

// The public benchmark keeps a number of users busy with ten rounds of requests
// whose lengths differ; all begin at once, so a tenth of what it averages is a
// burst. It was exported several times: by date, with runs of speculative decoding
// among the others, and as a dump of its database, without. Its mixtures asked for a cache
// of 8 bits: in 51 runs more requests than fit otherwise were served at once, in 10 still.
var (
	dump  = regexp.MustCompile(`^db-dump/`)
	dated = regexp.MustCompile(`source_file=(\d{4}-\d{2}-\d{2}|[\w.-]+-gap-analysis)\.csv`)
	// Sweeps of engines by one load generator, a file for each engine's version and
	// model.
	sweep = regexp.MustCompile(`/(vllm|sglang|trtllm)/([\w.]+)/([\w.-]+)\.csv`)
	// Runs of whole deployments, by job. Some say how many users they had. The batches of
	// the others are those that a search proposed: of five with two pools three do not fit
	// into the cache, one with 97 % of it decodes three times as slow as a full one would,
	// and one answers faster than its context can be read.
	job = regexp.MustCompile(`gtl_(job|task)_id=`)
)

func sourceOf(c columns) source {
	text := c.text("silicon_data_source")
	switch {
	case dump.MatchString(text):
		s := source{arrival: perfmodel.Staggered, told: true, public: true}
		if m := run.FindStringSubmatch(text); m != nil {
			s.booked = overbookings[m[1]]
			s.told = !slices.Contains(compiling, m[1]) || c.int("batch_size")*c.int("isl") < compiled
		}
		return s
	case dated.MatchString(text):
		return source{arrival: perfmodel.Staggered, told: true, mixed: true, public: true}
	case job.MatchString(text):
		return source{arrival: perfmodel.Staggered, unsaid: !concurrency.MatchString(text)}
	}
	m := sweep.FindStringSubmatch(text)
	if m == nil {
		return source{arrival: perfmodel.Staggered}
	}
	// Requests of the sweeps are equal. Those of SGLang 0.5.6 waited for all others'
	// prompts where these were short and for few where they were long: neither.
	if m[1] == string(perfmodel.SGLang) && !strings.HasPrefix(m[2], "0.5.1.") {
		return source{arrival: perfmodel.Staggered}
	}
	if slices.Contains(overbooked, m[1]+"/"+m[2]+"/"+m[3]) {
		return source{arrival: perfmodel.InStep, waiting: 1}
	}
	return source{arrival: perfmodel.InStep, told: true}
}

// overbooked are the sweeps with one user more than the engine had places: at the
// same prompt and batch, first tokens came the later the longer answers are, by 0.98
// of the time in which one of the places becomes free. In all others by at most 0.02.
// How these users came is not told: with 128 of them, first tokens took longer than
// with 32 by more on eight GPUs than on one, where prompts take less.
var overbooked = []string{"trtllm/1.0.0rc3/meta-llama_Llama-3.1-8B-Instruct"}

// overbookings are runs of disaggregated deployments with TensorRT-LLM, by number. By
// Little's law 32.0, 64.0, 8.0, 16.1, 4.1, 8.2 and so on requests decoded at a time on each of
// their decode workers of one attention rank, where the table has 36, 75, 10, 21, 6 and 11 as
// the batch: that was computed from the users, and the engine had the power of two below. In
// three runs this is so of the most users of a deployment at one length only, with fewer first
// tokens come at once; in two, of every number of users, and 84 waited less than 24. In the
// last three workers times ranks times a size of batches are the users, and first tokens come
// the later the longer the whole answer takes: by 2 to 5 % of it, with 4 and with 64 for each.
var overbookings = map[string]overbooking{"247": topmost, "251": topmost, "778": topmost, "265": everyone, "269": everyone, "281": exact, "288": exact, "333": exact}

// compiling are runs of SGLang in which first tokens took 7 to 9 s longer wherever all users
// together began with as many tokens as compiled or more, be it 32 prompts of 1024 or 4 of
// 8192, and not where they were fewer, or in another run of the same deployment: a kernel for
// so many was made while it was timed, which a tenth of all requests waited for. What first
// tokens took otherwise is not told.
var compiling = []string{"122", "123", "124"}

const compiled = 32768

var run = regexp.MustCompile(`workflow_run_id=(\d+)`)

// places is for how many requests an attention rank of a decode worker has room, if it
// is fewer than came; 0 otherwise. Most is the largest batch of the sweep.
func (s source) places(c columns, most int) int {
	switch {
	case s.booked == exact:
		return c.int("decode_batch_size")
	case s.booked == unknown || c.int("decode_attention_dp_size") > 1:
		return 0
	case s.booked == everyone:
		most = c.int("decode_batch_size")
	}
	return 1 << (bits.Len(uint(max(1, most))) - 1)
}

var config = regexp.MustCompile(`config_id=(\d+)`)

// sweep names runs of one deployment with requests of the same lengths.
func (c columns) sweep() string {
	return fmt.Sprint(config.FindString(c.text("silicon_data_source")), " ", c.text("isl"), "/", c.text("osl"))
}

// ranked is the deployment of vLLM whose decode worker is listed with 16 tensor-parallel
// GPUs: with 256 users a token takes 19.0 ms and with 1024 only 1.8 ms more, where each GPU
// would read 768 more contexts of 1536 tokens, 41 GB even in 8 bits, for which a GB200 needs
// 5 ms at least. So each reads a part of them, and these are attention ranks.
func (c columns) ranked() bool {
	return c.text("backend") == "vllm" && config.FindString(c.text("silicon_data_source")) == "config_id=697"
}

// drafted are the deployments of which a dated export contradicts the dump: the
// same deployment at the same load is faster by a third and more, as with
// speculative decoding.
var drafted = map[perfmodel.Engine]map[string][]perfmodel.Generation{
	perfmodel.TRTLLM: {"deepseek-ai/DeepSeek-V3": {perfmodel.Blackwell, perfmodel.Hopper}},
	perfmodel.SGLang: {
		"deepseek-ai/DeepSeek-V3": {perfmodel.Blackwell},
		"Qwen/Qwen3.5-397B-A17B":  {perfmodel.Blackwell},
	},
}

func (s source) drafts(engine perfmodel.Engine, model string, generation perfmodel.Generation) bool {
	if !s.mixed {
		return false
	}
	return slices.Contains(drafted[engine][model], generation)
}

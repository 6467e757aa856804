package blueprint

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/search"
)

// Role is what a worker of a graph does.
type Role string

// The roles.
const (
	Serve   Role = "serve" // prompt and answer
	Prefill Role = "prefill"
	Decode  Role = "decode"
)

// launch writes a worker's layout, limits and role into its command line.
func launch(l *line, o Options, w search.Worker, role Role) error {
	switch o.Backend {
	case config.SGLang:
		sglang(l, o, w, role)
	case config.TRTLLM:
		return trtllm(l, o, w, role)
	default:
		vllm(l, o, w, role)
	}
	return nil
}

// number sets a flag that is left out at its default of one.
func number(l *line, n int, names ...string) {
	if n > 1 {
		l.set(strconv.Itoa(n), names...)
	} else {
		l.drop(true, names...)
	}
}

// sequences is the most that each attention rank may have at once: beyond it the
// targets are missed. A prefill engine is left alone.
func sequences(w search.Worker, role Role) int {
	if role == Prefill || w.Limit == 0 {
		return 0
	}
	return max(1, w.Limit/w.Layout.Ranks())
}

func vllm(l *line, o Options, w search.Worker, role Role) {
	p := w.Layout.Parallel
	l.set(o.modelPath(), "--model")
	if o.modelPath() != o.Model {
		l.set(o.Model, "--served-model-name")
	}
	l.set(strconv.Itoa(p.TP), "--tensor-parallel-size", "-tp")
	number(l, p.PP, "--pipeline-parallel-size", "-pp")
	number(l, p.DP, "--data-parallel-size", "-dp")
	l.toggle(p.EP > 1, "--enable-expert-parallel")
	l.toggle(role == Prefill, "--is-prefill-worker")
	if role != Decode {
		l.toggle(false, "--is-decode-worker")
	}
	if n := sequences(w, role); n > 0 {
		l.set(strconv.Itoa(n), "--max-num-seqs")
	}
	if o.MaxContext > 0 {
		l.set(strconv.Itoa(o.MaxContext), "--max-model-len")
	}
}

func sglang(l *line, o Options, w search.Worker, role Role) {
	p := w.Layout.Parallel
	l.set(o.modelPath(), "--model-path", "--model")
	l.set(o.Model, "--served-model-name")
	// With attention ranks, the tensor-parallel size counts all GPUs.
	attention := w.Layout.Kind == search.DEP
	tp := p.TP
	if attention {
		tp *= p.DP
	}
	l.set(strconv.Itoa(tp), "--tp", "--tp-size", "--tensor-parallel-size")
	number(l, p.PP, "--pp-size", "--pp", "--pipeline-parallel-size")
	number(l, p.DP, "--dp", "--dp-size", "--data-parallel-size")
	number(l, p.EP, "--ep", "--ep-size", "--expert-parallel-size")
	l.toggle(attention, "--enable-dp-attention")
	if role == Serve {
		l.drop(true, "--disaggregation-mode")
		l.drop(true, "--disaggregation-transfer-backend")
		l.drop(true, "--disaggregation-bootstrap-port")
	} else {
		l.set(string(role), "--disaggregation-mode")
		if _, given := l.value("--disaggregation-transfer-backend"); !given {
			l.set("nixl", "--disaggregation-transfer-backend")
		}
		if _, given := l.value("--disaggregation-bootstrap-port"); !given {
			l.set("12345", "--disaggregation-bootstrap-port")
		}
	}
	if n := sequences(w, role); n > 0 {
		// SGLang counts over all ranks.
		l.set(strconv.Itoa(n*w.Layout.Ranks()), "--max-running-requests")
	}
	if o.MaxContext > 0 {
		l.set(strconv.Itoa(o.MaxContext), "--context-length")
	}
}

func trtllm(l *line, o Options, w search.Worker, role Role) error {
	p := w.Layout.Parallel
	l.set(o.modelPath(), "--model-path")
	l.set(o.Model, "--served-model-name")
	l.set(strconv.Itoa(p.TP*p.DP), "--tensor-parallel-size")
	number(l, p.PP, "--pipeline-parallel-size")
	number(l, p.EP, "--expert-parallel-size")
	if role == Serve {
		l.drop(true, "--disaggregation-mode")
		l.drop(true, "--disaggregation-strategy")
	} else {
		l.set(string(role), "--disaggregation-mode")
	}
	if n := sequences(w, role); n > 0 {
		l.set(strconv.Itoa(n), "--max-batch-size")
	}
	if o.MaxContext > 0 {
		l.set(strconv.Itoa(o.MaxContext), "--max-seq-len")
	}
	// What has no flag goes over the engine's file, beside what is there.
	override := map[string]any{}
	text, given := l.value("--override-engine-args")
	if given {
		if err := json.Unmarshal([]byte(text), &override); err != nil {
			return fmt.Errorf("read --override-engine-args %q: %w", text, err)
		}
	}
	override["enable_attention_dp"] = p.DP > 1
	if role != Serve {
		override["cache_transceiver_config"] = map[string]any{"backend": "DEFAULT"}
		// Overlapping steps would send the cache before it is whole.
		override["disable_overlap_scheduler"] = role == Prefill
	}
	body, err := json.Marshal(override)
	if err != nil {
		return fmt.Errorf("write --override-engine-args: %w", err)
	}
	l.set(string(body), "--override-engine-args")
	return nil
}

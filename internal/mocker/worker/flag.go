package worker

import (
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
)

// knownFlags per backend: those the mock reads and those it knows to mean
// nothing without a GPU. Others are worth a warning, as they may be misspelt.
var knownFlags = map[string][]string{
	"vllm": strings.Fields(`--model --served-model-name --tensor-parallel-size -tp --pipeline-parallel-size -pp --is-prefill-worker
		--is-decode-worker --gpu-memory-utilization --max-model-len --block-size --enforce-eager --data-parallel-size -dp
		--data-parallel-size-local -dpl --data-parallel-start-rank -dpr --data-parallel-address -dpa --data-parallel-rpc-port -dpp
		--data-parallel-hybrid-lb --data-parallel-rank --headless --no-enable-prefix-caching --enable-prefix-caching --connector
		--async-scheduling --disable-log-requests --hf-overrides --all2all-backend --enable-expert-parallel --enable-dbo
		--dbo-decode-token-threshold --dbo-prefill-token-threshold --enable-eplb --eplb-config --max-num-seqs --kv-events-config --enable-lora --max-lora-rank
		--max-loras --compilation-config --trust-remote-code --distributed-executor-backend --num-gpu-blocks-override --max-num-batched-tokens
		--enable-chunked-prefill --no-enable-chunked-prefill --migration-limit --enable-elastic-ep --task --runner --dtype --quantization
		--kv-cache-dtype --kv-transfer-config --seed --request-plane --store-kv --custom-jinja-template --watermark --speedup-ratio`),
	"sglang": strings.Fields(`--model-path --model --served-model-name --trust-remote-code --tp --tp-size --tensor-parallel-size
		--skip-tokenizer-init --disaggregation-bootstrap-port --disaggregation-mode --host --port --page-size
		--disaggregation-transfer-backend --mem-fraction-static --ep-size --ep --dp --dp-size --data-parallel-size --enable-dp-attention
		--prefill-round-robin-balance --load-balance-method --kv-events-config --dist-init-addr --nnodes --node-rank --context-length
		--max-running-requests --chunked-prefill-size --disable-radix-cache --endpoint --migration-limit --embedding-worker --is-embedding
		--enable-metrics --disable-cuda-graph --dtype --quantization --kv-cache-dtype --num-gpu-blocks-override --watermark --speedup-ratio
		--pp-size --pp --pipeline-parallel-size`),
	"trtllm": strings.Fields(`--model-path --served-model-name --extra-engine-args --override-engine-args --disaggregation-mode
		--disaggregation-strategy --tensor-parallel-size --expert-parallel-size --pipeline-parallel-size --max-batch-size --max-num-tokens
		--max-seq-len --max-beam-width --free-gpu-memory-fraction --publish-events-and-metrics --kv-block-size --endpoint --migration-limit
		--modality --encode-endpoint --num-gpu-blocks-override --watermark --speedup-ratio --enable-chunked-prefill`),
	"mocker": strings.Fields(`--model-path --model-name --endpoint --num-gpu-blocks-override --block-size --max-num-seqs
		--max-num-batched-tokens --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill
		--watermark --speedup-ratio --data-parallel-size --startup-time --planner-profile-data --num-workers --extra-engine-args
		--is-prefill-worker --is-decode-worker --enable-local-indexer --bootstrap-ports --store-kv --request-plane --event-plane
		--migration-limit`),
}

func unknownFlags(backend string, args commandline.Args) []string {
	known, ok := knownFlags[backend]
	if !ok {
		return nil
	}
	var out []string
	for _, flag := range args.Flags() {
		head, _, _ := strings.Cut(flag, ".") // --eplb-config.window_size
		if !slices.Contains(known, head) {
			out = append(out, "flag not known to the mock engine: "+flag)
		}
	}
	return out
}

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
		--kv-cache-dtype --kv-transfer-config --seed --request-plane --store-kv --custom-jinja-template --watermark --speedup-ratio
		--disaggregation-mode --nnodes --node-rank --master-addr --master-port --load-format --safetensors-load-strategy --attention-backend --attention-config
		--cpu-distributed-timeout-seconds --data-parallel-backend --disable-custom-all-reduce --disable-hybrid-kv-cache-manager --no-disable-hybrid-kv-cache-manager
		--dyn-reasoning-parser --dyn-tool-call-parser --reasoning-parser --reasoning-parser-plugin --reasoning-config --tool-call-parser --enable-cumem-allocator
		--enable-flashinfer-autotune --no-enable-flashinfer-autotune --enable-mamba-cache-stochastic-rounding --enable-mm-embeds --enable-multimodal
		--enable-sleep-mode --frontend-decoding --kda-prefill-backend --kernel-config --language-model-only --mamba-backend --mamba-cache-mode
		--mamba-cache-philox-rounds --mamba-ssm-cache-dtype --max-cudagraph-capture-size --media-io-kwargs --mm-encoder-attn-backend --mm-encoder-tp-mode
		--mm-processor-cache-gb --moe-backend --multimodal-embedding-cache-capacity-gb --no-async-scheduling --no-enable-log-requests
		--no-scheduler-reserve-full-isl --numa-bind --offload-group-size --offload-num-in-group --offload-prefetch-step --scheduler-cls --skip-mm-profiling
		--speculative-config --spec-method --spec-tokens --stream-interval --tokenizer-mode --video-pruning-rate --vllm-endpoint --host --port --grpc-port`),
	"sglang": strings.Fields(`--model-path --model --served-model-name --trust-remote-code --tp --tp-size --tensor-parallel-size
		--skip-tokenizer-init --disaggregation-bootstrap-port --disaggregation-mode --host --port --page-size
		--disaggregation-transfer-backend --mem-fraction-static --ep-size --ep --dp --dp-size --data-parallel-size --enable-dp-attention
		--prefill-round-robin-balance --load-balance-method --kv-events-config --dist-init-addr --nnodes --node-rank --context-length
		--max-running-requests --chunked-prefill-size --disable-radix-cache --endpoint --migration-limit --embedding-worker --is-embedding
		--enable-metrics --disable-cuda-graph --dtype --quantization --kv-cache-dtype --num-gpu-blocks-override --watermark --speedup-ratio
		--pp-size --pp --pipeline-parallel-size --attention-backend --config --cuda-graph-backend-decode --cuda-graph-backend-prefill --cuda-graph-max-bs
		--cuda-graph-max-bs-decode --cuda-graph-max-bs-prefill --deepep-mode --disable-flashinfer-autotune --dyn-enable-structural-tag --dyn-reasoning-parser
		--dyn-tool-call-parser --elastic-ep-backend --elastic-ep-initial-size --enable-dp-lm-head --enable-eplb --enable-flashinfer-allreduce-fusion
		--enable-multi-layer-eagle --enable-multimodal --enable-torch-symm-mem --ep-num-redundant-experts --expert-parallel-size
		--flashinfer-allreduce-fusion-backend --fp4-gemm-backend --incremental-streaming-output --linear-attn-decode-backend --linear-attn-prefill-backend
		--mamba-full-memory-ratio --mamba-radix-cache-strategy --mamba-ssm-dtype --max-ep-size --max-prefill-tokens --model-loader-extra-config
		--moe-a2a-backend --moe-runner-backend --mooncake-ib-device --nsa-decode-backend --nsa-prefill-backend --reasoning-parser --speculative-algo
		--speculative-algorithm --speculative-eagle-topk --speculative-num-draft-tokens --speculative-num-steps --speculative-use-rejection-sampling
		--stream-interval --swa-full-tokens-ratio --tool-call-parser --watchdog-timeout --weight-loader-prefetch-checkpoints
		--weight-loader-prefetch-num-threads --sglang-endpoint --grpc-port`),
	"trtllm": strings.Fields(`--model-path --served-model-name --extra-engine-args --override-engine-args --disaggregation-mode
		--disaggregation-strategy --tensor-parallel-size --expert-parallel-size --pipeline-parallel-size --max-batch-size --max-num-tokens
		--max-seq-len --max-beam-width --free-gpu-memory-fraction --publish-events-and-metrics --kv-block-size --endpoint --migration-limit
		--modality --encode-endpoint --num-gpu-blocks-override --watermark --speedup-ratio --enable-chunked-prefill
		--model --request-plane --discovery-backend --dyn-reasoning-parser --dyn-tool-call-parser --trtllm-endpoint`),
	"mocker": strings.Fields(`--model-path --model-name --endpoint --num-gpu-blocks-override --block-size --max-num-seqs
		--max-num-batched-tokens --enable-prefix-caching --no-enable-prefix-caching --enable-chunked-prefill --no-enable-chunked-prefill
		--watermark --speedup-ratio --data-parallel-size --startup-time --planner-profile-data --num-workers --extra-engine-args
		--is-prefill-worker --is-decode-worker --enable-local-indexer --bootstrap-ports --store-kv --request-plane --event-plane
		--migration-limit --disaggregation-mode`),
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
